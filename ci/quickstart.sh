#!/usr/bin/env bash
# From nothing to a model that is compiled, checked and round-tripped: installs what is missing (Debian 12 or 13; as root or
# with sudo), builds the program, runs it on a sample. Commands are shown as one would type them.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/common.sh

say_and_run() { printf '$ %s\n' "$*"; "$@"; }

stage "packages"
ci/setup.sh
stage "build of build/cpu-release/lyo (some minutes the first time)"
build cpu-release lyo_program
stage "a model that PyTorch exported: compile, check, round trip"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=tests/cases/seed_mlp
say_and_run build/cpu-release/lyo compile $model/model.pt2 -o "$out/seed.lyo" --cache none
say_and_run build/cpu-release/lyo check "$out/seed.lyo" $model/io.safetensors
say_and_run build/cpu-release/lyo roundtrip "$out/seed.lyo" -o "$out/again.lyo"
say_and_run cmp "$out/seed.lyo" "$out/again.lyo"
stage ""
echo
echo "quickstart: compiled, right numbers, the same bytes back. The program is build/cpu-release/lyo."
