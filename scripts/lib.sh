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
