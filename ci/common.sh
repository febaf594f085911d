# Shared by the scripts of ci/; sourced, from the root of the repository.
# shellcheck shell=bash

# `stage NAME`: says what begins, and how long the stage before it took.
stage() {
    local now=$SECONDS
    if [ -n "${stage_name:-}" ]; then printf '== %s: done in %d s\n' "$stage_name" $((now - stage_start)); fi
    stage_name=$1 stage_start=$now
    if [ -n "$1" ]; then printf '\n== %s\n' "$1"; fi
}

# `quietly COMMAND...`: its output only if it fails.
quietly() {
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then rm -f "$log"; return 0; fi
    local status=$?
    cat "$log"
    rm -f "$log"
    echo "failed (exit status $status): $*" >&2
    return "$status"
}

# `build PRESET [TARGET...]`: configures and builds.
build() {
    local preset=$1
    shift
    quietly cmake --preset "$preset"
    if [ $# -gt 0 ]; then quietly cmake --build --preset "$preset" --target "$@"; else quietly cmake --build --preset "$preset"; fi
}

# The toolkit is often installed where PATH does not look.
nvcc_there() { command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ]; }
