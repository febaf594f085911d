#!/usr/bin/env bash
# ci/gpu-test.sh BUILD_DIR          runs everything that needs a GPU, from a finished build (cuda-release)
# ci/gpu-test.sh --pack BUILD_DIR   before that, where it was built: puts the shared libraries that another machine may lack
#                                   into BUILD_DIR/lib
# The machine that runs it needs a driver; no CMake, no compiler. compute-sanitizer and NVRTC are used where the CUDA toolkit
# has them. Whatever could not run is listed at the end. Exit status 0: all that ran passed; 1: something failed; 3: no GPU.
set -uo pipefail
if [ "${1:-}" = --pack ]; then
    dir=${2:?usage: ci/gpu-test.sh --pack BUILD_DIR}
    mkdir -p "$dir/lib"
    for binary in "$dir"/lyo "$dir"/gpu_*_test; do
        if [ -x "$binary" ]; then ldd "$binary"; fi
    done | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' |
        sort -u | xargs -r cp -Lt "$dir/lib"
    ls "$dir/lib"
    exit 0
fi
dir=$(cd "${1:?usage: ci/gpu-test.sh BUILD_DIR}" && pwd) || exit 2
cd "$(dirname "$0")/.." || exit 3
export PATH=$PATH:/usr/local/cuda/bin
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64

passed=0
failed=()
missing=()
section() { printf '\n== %s\n' "$1"; }
check() {  # NAME COMMAND...
    local name=$1 log
    shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        echo "FAILED  $name (exit status $?): $*"
        tail -40 "$log"
        failed+=("$name")
    fi
    rm -f "$log"
}

# finished PID LOG: that part's output and exit status.
finished() {
    local status=0
    wait "$1" || status=$?
    cat "$2"
    return "$status"
}

section "machine"
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L | grep -q '^GPU'; then
    echo "no GPU with a driver on this machine; nothing was run"
    exit 3
fi
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
# Libraries that travelled with the build are used only where this machine has none.
if [ -d "$dir/lib" ]; then export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$dir/lib; fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
shopt -s nullglob
tests=("$dir"/gpu_*_test)

section "tests"
if [ ${#tests[@]} -eq 0 ]; then missing+=("tests: $dir has no gpu_*_test; was it built with LYO_CUDA?"); fi
for test in "${tests[@]}"; do
    name=$(basename "$test")
    check "$name" "$test" --gtest_brief=1
    "$test" --gtest_color=no >"$out/log" 2>&1
    # There is a GPU: a test that finds none (a driver too old, say) has failed.
    if grep -q 'no CUDA device' "$out/log"; then failed+=("$name: $(grep -m1 'no CUDA device' "$out/log")"); fi
    for skipped in $(sed -n 's/^\[  SKIPPED \] \([^ ,]*\)$/\1/p' "$out/log" | sort -u); do missing+=("$name: $skipped skipped itself"); done
done

section "cases on cuda:0"
lyo=$dir/lyo
runs_on_gpu=no
if [ ! -x "$lyo" ]; then
    missing+=("cases: $dir has no program lyo")
else
    seed=tests/cases/seed_mlp
    "$lyo" compile $seed/model.pt2 -o "$out/seed.lyo" --target cpu --target "cuda:$arch" --cache none >"$out/log" 2>&1 &&
        "$lyo" check "$out/seed.lyo" $seed/io.safetensors --device cuda:0 >>"$out/log" 2>&1
    if grep -q 'this build of lyo has no CUDA backend' "$out/log"; then
        missing+=("cases, round trips, benchmarks: $(tail -1 "$out/log")")
    else
        runs_on_gpu=yes
    fi
fi
if [ $runs_on_gpu = yes ]; then
    # LYO_CASES names a further folder of cases.
    for folder in tests/cases/*/ ${LYO_CASES:+"$LYO_CASES"/*/}; do
        name=$(basename "$folder")
        [ -f "$folder/model.pt2" ] || continue
        tolerance=$(sed -nE 's/.*"(rtol|atol)": *([-+0-9.eE]+).*/--\1 \2/p' "$folder/case.json")
        check "compile $name" "$lyo" compile "$folder/model.pt2" -o "$out/$name.lyo" --target "cuda:$arch" --cache none
        # shellcheck disable=SC2086
        check "check $name" "$lyo" check "$out/$name.lyo" "$folder/io.safetensors" --device cuda:0 $tolerance
        check "roundtrip $name" "$lyo" roundtrip "$out/$name.lyo" -o "$out/$name.again.lyo" --device cuda:0
        check "same bytes $name" cmp "$out/$name.lyo" "$out/$name.again.lyo"
    done
    section "benchmarks"
    for name in seed_mlp pointwise_chain norms_softmax; do "$lyo" bench "$out/$name.lyo" --device cuda:0 || failed+=("bench $name"); done
fi

section "compute-sanitizer"
if command -v compute-sanitizer >/dev/null; then
    # A tool slows a test down a hundredfold, mostly on the host: each test binary is run in parts, all of a tool at once.
    parts=8
    for test in "${tests[@]}"; do
        # The tests of sizes beyond 32 bits would take hours under it.
        for tool in memcheck racecheck initcheck synccheck; do
            filter="-*Beyond32Bits*"
            # initcheck does not see what cuBLASLt's kernels store in bulk, and takes it for uninitialized.
            if [ "$tool" = initcheck ]; then filter="$filter:*MatrixProducts*"; fi
            running=()
            for ((part = 0; part < parts; ++part)); do
                GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part compute-sanitizer --tool "$tool" --error-exitcode 1 "$test" \
                    --gtest_brief=1 --gtest_filter="$filter" >"$out/part-$part" 2>&1 &
                running+=($!)
            done
            for ((part = 0; part < parts; ++part)); do
                check "$(basename "$test") under $tool, part $part" finished "${running[part]}" "$out/part-$part"
            done
        done
    done
else
    missing+=("compute-sanitizer: not installed on this machine")
fi

section "result"
for what in "${missing[@]}"; do echo "NOT RUN  $what"; done
for what in "${failed[@]}"; do echo "FAILED   $what"; done
echo "gpu-test: $passed passed, ${#failed[@]} failed, ${#missing[@]} not run"
if [ ${#failed[@]} -gt 0 ]; then exit 1; fi
if [ $passed -eq 0 ]; then echo "nothing could be run"; exit 3; fi
