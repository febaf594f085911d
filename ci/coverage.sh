#!/usr/bin/env bash
# ci/coverage.sh [PERCENT]: which lines of modules/artifact the corpora reach, and whether that is PERCENT (90) of them.
# Builds the fuzz targets with coverage in build/coverage, replays corpus/, prints a table by file.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/common.sh
wanted=${1:-90}
dir=build/coverage
targets=(load roundtrip)

quietly cmake --preset cpu-release -B $dir -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" -DLYO_COVERAGE=ON
quietly cmake --build $dir --target "${targets[@]/#/fuzz_}"
rm -f $dir/*.profraw
for target in "${targets[@]}"; do
    LLVM_PROFILE_FILE=$dir/$target.profraw quietly "$dir/fuzz_$target" "corpus/$target"
done
llvm-profdata-19 merge -sparse $dir/*.profraw -o $dir/corpora.profdata

objects=("$dir/fuzz_${targets[0]}")
for target in "${targets[@]:1}"; do objects+=(-object "$dir/fuzz_$target"); done
llvm-cov-19 export "${objects[@]}" -instr-profile=$dir/corpora.profdata -summary-only -sources modules/artifact >$dir/summary.json
python3 - $dir/summary.json "$wanted" <<'PY'
import json, os, sys

data = json.load(open(sys.argv[1]))["data"][0]
wanted = float(sys.argv[2])
for file in data["files"]:
    lines = file["summary"]["lines"]
    print(f"{lines['percent']:6.1f}%  {lines['covered']:5d} of {lines['count']:5d}  {os.path.relpath(file['filename'])}")
lines = data["totals"]["lines"]
enough = lines["percent"] >= wanted
print(f"{lines['percent']:6.1f}%  {lines['covered']:5d} of {lines['count']:5d}  lines of modules/artifact, "
      f"{wanted:g}% wanted: {'enough' if enough else 'TOO FEW'}")
sys.exit(0 if enough else 1)
PY
