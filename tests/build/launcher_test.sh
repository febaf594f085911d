#!/usr/bin/env bash
# launcher_test.sh LAUNCHER SCRATCH COMPILER SCANNER: does a compiler launcher give what a compiler would give?
# ccache alone does not: it cannot see that an imported interface has changed. Builds a small project of modules, changes
# interfaces under it and demands the new values, in the same build folder and in fresh ones, with a cache of its own; then
# builds the same again and demands hits, since a launcher that never uses the cache would pass the rest.
set -euo pipefail
launcher=$1 scratch=$2 compiler=$3 scanner=$4
here=$(cd "$(dirname "$0")" && pwd)
command -v ccache >/dev/null || { echo "skipped: ccache is not installed"; exit 77; }

rm -rf "$scratch"
mkdir -p "$scratch"
cp -r "$here/launcher" "$scratch/project"
export CCACHE_DIR=$scratch/cache
unset CCACHE_EXTRAFILES CCACHE_DISABLE CCACHE_RECACHE CCACHE_CONFIGPATH CCACHE_SLOPPINESS CCACHE_DEPEND

interface() {  # LAYOUT FACTOR DEPTH
    sed -e "s/@LAYOUT@/$1/" -e "s/@FACTOR@/$2/" -e "s/@DEPTH@/$3/" "$here/launcher/shape.cppm.in" >"$scratch/project/shape.cppm"
}
build() {  # FOLDER
    cmake -S "$scratch/project" -B "$scratch/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
        -DCMAKE_CXX_COMPILER_CLANG_SCAN_DEPS="$scanner" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$scratch/log" 2>&1 &&
        cmake --build "$scratch/$1" >>"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
}
expect() {  # FOLDER VALUES WHEN
    local got
    got=$("$scratch/$1/app")
    if [ "$got" != "$2" ]; then echo "stale object $3: expected '$2', got '$got'"; exit 1; fi
    echo "ok: $2 $3"
}
hits() {
    ccache --print-stats | awk '$1 == "direct_cache_hit" || $1 == "preprocessed_cache_hit" {n += $2} END {print n + 0}'
}

interface 'int rows = 0;' 2 5
build one
expect one "4 20 5" "at first"

interface 'int rows = 0; int columns = 0;' 2 5
build one
expect one "8 20 5" "after a change of the layout"

interface 'int rows = 0; int columns = 0;' 3 5
build one
expect one "8 30 5" "after a change of the template's body"

interface 'int rows = 0; int columns = 0;' 3 7
build one
expect one "8 30 7" "after a change of the constant"

# The cache now holds an object for each of the interfaces. A fresh folder must get the one of this interface.
interface 'int rows = 0; double area = 0;' 4 9
build two
expect two "16 40 9" "in a fresh folder"

interface 'int rows = 0;' 2 5
build one
expect one "4 20 5" "after going back to the first interface"

before=$(hits)
cmake --build "$scratch/one" --target clean >/dev/null
build one
expect one "4 20 5" "after building the same again"
after=$(hits)
if [ "$after" -le "$before" ]; then echo "building the same again missed the cache ($before hits before, $after after)"; ccache -s; exit 1; fi
echo "ok: the same again came from the cache ($((after - before)) hits)"
