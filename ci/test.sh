#!/usr/bin/env bash
# Everything that must hold before a change lands, from a machine with nothing installed (Debian 12 or 13; as root or with
# sudo). Stops at the first stage that fails. Needs no GPU; without nvcc the CUDA build is skipped, and that is said.
# Cheap stages come before costly ones; the full run of ctest comes last, so that its summary ends the output.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/common.sh

stage "packages"
ci/setup.sh

stage "format and lint"
ci/lint

stage "cpu-release: build"
build cpu-release

stage "clang-tidy"
ci/tidy build/cpu-release

stage "cpu-asan: unit tests, cases and corpora with AddressSanitizer and UndefinedBehaviorSanitizer"
build cpu-asan
tests cpu-asan -LE 'package|build' -j "$(nproc)"

stage "cpu-tsan: concurrent tests with ThreadSanitizer"
build cpu-tsan concurrent_tests
tests cpu-tsan -L concurrent

stage "fuzzing: a minute, shared by all targets"
mapfile -t targets < <(ci/fuzz targets)
build fuzz "${targets[@]/#/fuzz_}"
ci/fuzz all 60

if nvcc_there; then
    # What differs from cpu-release; the other tests would be built a second time for nothing.
    stage "cuda-release: device code, the program, the GPU tests"
    build cuda-release lyo_program gpu_tests
    tests cuda-release -L gpu
else
    stage "cuda-release: SKIPPED, this machine has no nvcc"
fi

stage "cpu-release: all tests"
exec ctest --preset cpu-release -j "$(nproc)"
