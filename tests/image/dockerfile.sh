#!/usr/bin/env bash
# The Dockerfile leaves an image of one layer, with the module in it as /plugin.wasm. Where the Rust
# image cannot be pulled, a stand-in takes its place that copies the module instead of building it.
set -euo pipefail
cd "$(dirname "$0")/../.."
export step=docker
. scripts/lib.sh

command -v docker >/dev/null || need 'no Docker' docker.io
make --no-print-directory build

image=request-mirror-test:dockerfile
rust=$(sed -n 's/^FROM \(.*\) AS build$/\1/p' Dockerfile)
stand_in=
scratch=$(mktemp -d)
clean() {
    docker rmi --force $image >/dev/null 2>&1 || true
    [ -z "$stand_in" ] || docker rmi --force "$rust" >/dev/null
    docker image prune --force --filter label=request-mirror.stand-in >/dev/null
    rm -rf "$scratch"
}
trap clean EXIT

if ! docker pull --quiet "$rust" >/dev/null 2>&1 && ! docker inspect "$rust" >/dev/null 2>&1; then
    say "cannot pull $rust: a stand-in takes its place, which compiles nothing"
    cp dist/request_mirror.wasm "$scratch/module"
    printf '#!/bin/sh\necho /\n' >"$scratch/rustc" # a folder, where the target's libraries would be
    cat >"$scratch/cargo" <<'CARGO'
#!/bin/sh
for argument; do case $argument in wasm32-*) target=$argument ;; esac; done
mkdir -p "target/$target/release"
cp /bin/module "target/$target/release/request_mirror.wasm"
CARGO
    chmod +x "$scratch"/*
    tools=(sh cmp cp dirname mkdir sed wc)
    tests/stand-in.sh "$rust" '[]' 0 "${tools[@]/#//usr/bin/}" "$scratch"/*
    stand_in=yes
fi

docker build --quiet --tag $image . >/dev/null
docker save $image | tar -x -C "$scratch"
mapfile -t layers < <(python3 -c 'import json, sys; print(*json.load(sys.stdin)[0]["Layers"], sep="\n")' <"$scratch/manifest.json")
[ ${#layers[@]} = 1 ] || die "${#layers[@]} layers instead of one"
[ "$(tar -tf "$scratch/${layers[0]}")" = plugin.wasm ] || die 'something else than plugin.wasm is in it'
tar -xf "$scratch/${layers[0]}" -C "$scratch"
[ ! "$stand_in" ] || cmp "$scratch/plugin.wasm" dist/request_mirror.wasm || die 'it is another module'
say 'the Dockerfile leaves one layer with /plugin.wasm'
