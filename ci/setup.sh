#!/bin/bash
# Installs what a build of lyo needs on Debian 12 or 13. Safe to run again: it does nothing when all is there.
# The distribution's own mirror is used for everything, as the machine's apt configuration names it.
set -euo pipefail

packages=(
    clang-19 clang-tools-19 clang-format-19 clang-tidy-19 llvm-19 libclang-rt-19-dev lld-19   # compiler, scanner, sanitizers
    ninja-build ccache git python3 zip
    libboost1.81-dev librange-v3-dev nlohmann-json3-dev libzip-dev libcli11-dev libdlpack-dev libssl-dev libdnnl-dev
    libgtest-dev libbenchmark-dev
)
# Debian 13 moved Boost on; any version with PFR (1.75 and later) will do.
. /etc/os-release
if [ "${VERSION_CODENAME:-}" != bookworm ]; then packages=("${packages[@]/libboost1.81-dev/libboost-dev}"); fi

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

has() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

cmake_is_new_enough() {
    command -v cmake >/dev/null || return 1
    local version
    version=$(cmake --version | sed -n '1s/.* //p')
    [ "$(printf '%s\n3.28\n' "$version" | sort -V | head -1)" = 3.28 ]
}

missing=()
for package in "${packages[@]}"; do has "$package" || missing+=("$package"); done
if [ ${#missing[@]} -eq 0 ] && cmake_is_new_enough; then exit 0; fi

export DEBIAN_FRONTEND=noninteractive
as_root apt-get update -qq
if [ ${#missing[@]} -gt 0 ]; then as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; fi

# CMake knows modules since 3.28; Debian 12 has that only in its backports, on the mirror that serves the rest.
if ! cmake_is_new_enough; then
    if [ "${VERSION_CODENAME:-}" = bookworm ]; then
        mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
        if [ -z "$mirror" ]; then echo "setup: apt knows no bookworm mirror, so its backports cannot be found" >&2; exit 3; fi
        signed=/usr/share/keyrings/debian-archive-keyring.gpg
        echo "deb [signed-by=$signed] $mirror bookworm-backports main" | as_root tee /etc/apt/sources.list.d/lyo-backports.list >/dev/null
        as_root apt-get update -qq
        as_root apt-get install -y -qq -t bookworm-backports cmake >/dev/null
    else
        as_root apt-get install -y -qq cmake >/dev/null
    fi
fi
cmake_is_new_enough || { echo "setup: cmake $(cmake --version | sed -n '1s/.* //p') is too old, 3.28 is needed" >&2; exit 3; }
