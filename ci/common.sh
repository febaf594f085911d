# Shared by the scripts of ci/; sourced, from the root of the repository.
# shellcheck shell=bash

# `stage NAME`: says what begins, and how long the stage before it took; `stage ""` only the latter.
stage() {
    local now=$SECONDS
    if [ -n "${stage_name:-}" ]; then printf '   (%d s)\n' $((now - stage_start)); fi
    stage_name=$1 stage_start=$now
    if [ -n "$1" ]; then printf '\n== %s\n' "$1"; fi
}

# `quietly COMMAND...`: its output only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        cat "$log"
        echo "failed with exit status $status: $*"
    fi
    rm -f "$log"
    return "$status"
}

# `build PRESET [TARGET...]`: configures and builds.
build() {
    local preset=$1
    shift
    quietly cmake --preset "$preset"
    if [ $# -gt 0 ]; then quietly cmake --build --preset "$preset" --target "$@"; else quietly cmake --build --preset "$preset"; fi
}

# `tests PRESET [ctest arguments...]`: what ctest says in the end, and everything if a test fails.
tests() {
    local preset=$1 log
    shift
    log=$(mktemp)
    if ! ctest --preset "$preset" --no-tests=error "$@" >"$log" 2>&1; then
        cat "$log"
        rm -f "$log"
        return 1
    fi
    grep -E 'tests passed|Skipped' "$log"
    rm -f "$log"
}

# The toolkit is often installed where PATH does not look.
nvcc_there() { command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ]; }
