#!/bin/sh
# image.sh build: the module as an OCI image in dist/oci, without a Docker daemon.
# image.sh push IMAGE: sends it to a registry, and asks the registry whether it has it.
set -eu
cd "$(dirname "$0")/.."
step=image
. scripts/lib.sh

layout=dist/oci

build() {
    # SOURCE, or where git fetches from, without a password that may be in it.
    source=${SOURCE:-$(git config remote.origin.url | sed -E -n \
        's#^(https://)([^@/]*@)?#\1#; s#^git@([^:]+):#https://\1/#; s#\.git$##; s#^https://#&#p')}
    revision=$(git rev-parse HEAD 2>/dev/null || true)
    [ -z "$(git status --porcelain 2>/dev/null)" ] || revision=$revision-dirty
    created=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

    set -- title=request-mirror version="$(package version)" licenses="$(package license)" \
        description="$(package description)" created="$created"
    [ -z "$source" ] || set -- "$@" source="$source"
    [ -z "$revision" ] || set -- "$@" revision="$revision"
    digest=$(python3 scripts/oci-layout.py dist/request_mirror.wasm $layout "$@")
    say "$layout is ready; Istio's and Envoy Gateway's sha256 for it:"
    say "${digest#sha256:}"
}

push() {
    step=push
    image=${1:-}
    [ "$image" ] || die 'push where to? make push IMAGE=ghcr.io/me/request-mirror:0.1.0'
    command -v skopeo >/dev/null || need 'no skopeo' skopeo
    case $image in
    localhost[:/]* | 127.*) tls=false ;; # as Docker does it, plain HTTP on this machine
    *) tls=true ;;
    esac
    words=$(skopeo copy --quiet --preserve-digests --dest-tls-verify=$tls \
        oci:$layout "docker://$image" 2>&1) || refused
    digest=$(digest "oci:$layout")
    there=$(digest --tls-verify=$tls "docker://$image")
    [ "$digest" = "$there" ] || die "$image is not what was sent: $there there, $digest here"
    say "${image%:*}@$digest"
}

refused() {
    words=$(printf '%s\n' "$words" |
        sed -E -n 's/.*msg="(.*)"$/\1/p' | tail -n 1 | sed 's/\\"/"/g; s/\\n//g')
    case $words in
    *authoriz* | *authentic* | *denied*) hint="; log in: skopeo login ${image%%/*}" ;;
    *) hint= ;;
    esac
    die "$image is refused: ${words:-skopeo gave no reason}$hint"
}

# The digest of the manifest that skopeo finds there.
digest() { skopeo inspect --raw "$@" | sha256sum | sed 's/\(.*\)  -/sha256:\1/'; }

# A field of the package in Cargo.toml.
package() { sed -n "/^\[package\]/,/^\[lib\]/s/^$1 = \"\(.*\)\"/\1/p" Cargo.toml; }

case ${1:-} in
build) build ;;
push) push "${2:-}" ;;
*) die 'usage: image.sh build|push IMAGE' ;;
esac
