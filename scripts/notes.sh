#!/bin/sh
# notes.sh TAG FILE: what the changelog says of this release. A tag that is not the version in
# Cargo.toml, or that the changelog does not know, is refused.
set -eu
cd "$(dirname "$0")/.."
step=notes
. scripts/lib.sh

tag=$1
notes=$2
version=$(sed -n '0,/^version = /s/^version = "\(.*\)"/\1/p' Cargo.toml)

[ "$tag" = "v$version" ] || die "TAG=$tag, but Cargo.toml has version $version: it must be v$version"
mkdir -p "$(dirname "$notes")"
awk -v heading="## [$version]" '/^## / { on = index($0, heading) == 1; next } on' CHANGELOG.md |
    sed '/./,$!d' >"$notes"
[ -s "$notes" ] || die "CHANGELOG.md has no section ## [$version]"
say "$notes is ready"
