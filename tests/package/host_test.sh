#!/usr/bin/env bash
# host_test.sh everything|runtime SCRATCH PREFIX ARTIFACT [cmake arguments]: builds the project in host/ against what is
# installed in PREFIX, from a copy of it in SCRATCH, and runs it on ARTIFACT.
#   everything  the program as it stands: `import lyo;`, lyo::lyo
#   runtime     the same program with the runtime's modules, lyo::hydration; it must not need what only the importer needs
set -euo pipefail
what=$1 scratch=$2 prefix=$3 artifact=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$scratch"
mkdir -p "$scratch"
cp -r "$here/host" "$scratch/source"
if [ "$what" = runtime ]; then
    sed -i 's/^import lyo;$/import lyo.base;\nimport lyo.artifact;\nimport lyo.hydration;/' "$scratch/source/main.cpp"
    sed -i 's/lyo::lyo/lyo::hydration/' "$scratch/source/CMakeLists.txt"
fi

cmake -S "$scratch/source" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@"
cmake --build "$scratch/build"

# The host compiles the interfaces that it imports: none of them may need the headers of a library that only bodies use.
if ninja -C "$scratch/build" -t deps | grep -E '/(boost|range/v3|nlohmann)/|/zip\.h'; then
    echo "a host project needs headers of a library that it should not see"
    exit 1
fi

got=$("$scratch/build/app" "$artifact")
expected='tensor([[3, 3], [3, 3]], f32) 1'
if [ "$got" != "$expected" ]; then echo "expected '$expected', got '$got'"; exit 1; fi
echo "$got"

needed=$(readelf -d "$scratch/build/app" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "needs:" $needed
if [ "$what" = runtime ] && grep -q '^libzip' <<<"$needed"; then echo "the runtime alone must not need libzip"; exit 1; fi
