#!/usr/bin/env bash
# The image is what Istio and Envoy Gateway take, comes out the same each time, and survives a real
# registry; a registry that refuses is not passed over.
set -euo pipefail
cd "$(dirname "$0")/../.."
export step=oci
. scripts/lib.sh

for program in skopeo docker-registry curl jq; do
    command -v $program >/dev/null || need "no $program" $program
done
make --no-print-directory build

scratch=$(mktemp -d)
registry=
clean() {
    [ -z "$registry" ] || kill "$registry"
    rm -rf "$scratch"
}
trap clean EXIT

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
module_sum() { sha256sum <"${1:-dist/request_mirror.wasm}"; }

# holds WHAT JQ JSON: the expression is true of it.
holds() {
    jq -e "$2" <"$3" >/dev/null || {
        jq . <"$3" >&2
        die "not so: $1"
    }
}

# The layout.
scripts/image.sh build
cp -r dist/oci "$scratch/first"
touch dist/request_mirror.wasm
scripts/image.sh build >"$scratch/said"
diff -r dist/oci "$scratch/first" || die 'two builds differ'
say 'two builds give one digest'
digest=$(sed -n 's/^image  \([0-9a-f]\{64\}\)$/\1/p' "$scratch/said")

# taken_by_istio MANIFEST CONFIG: in the form that Istio and Envoy Gateway take.
taken_by_istio() {
    holds 'a manifest, not an index' '.mediaType == "application/vnd.oci.image.manifest.v1+json"' "$1"
    holds 'a config of OCI type' '.config.mediaType == "application/vnd.oci.image.config.v1+json"' "$1"
    holds 'one layer, a gzipped tar' \
        '[.layers[].mediaType] == ["application/vnd.oci.image.layer.v1.tar+gzip"]' "$1"
    holds 'licence, version, revision in the annotations' \
        '.annotations | [.["org.opencontainers.image." + ("licenses", "version", "revision")]] | all' "$1"
    holds 'linux/amd64' '.os == "linux" and .architecture == "amd64"' "$2"
    holds 'labels like the annotations' '.config.Labels."org.opencontainers.image.licenses" == "Apache-2.0"' "$2"
}

# start_registry READ_ONLY SETTING: on loopback, with one more setting.
start_registry() {
    port=$(port)
    cat >"$scratch/registry.yaml" <<EOF
version: 0.1
log: { level: error, accesslog: { disabled: true } }
http: { addr: "127.0.0.1:$port" }
storage: { filesystem: { rootdirectory: $scratch/registry }, maintenance: { readonly: { enabled: $1 } } }
$2
EOF
    docker-registry serve "$scratch/registry.yaml" >"$scratch/registry.log" 2>&1 &
    registry=$!
    tries=50
    until curl --silent --output /dev/null "127.0.0.1:$port/v2/"; do
        ((tries--)) || die "docker-registry does not start: $(cat "$scratch/registry.log")"
        sleep 0.2
    done
}
stop_registry() {
    kill "$registry"
    wait "$registry" || true
    registry=
}

# A registry takes it and gives it back.
start_registry false ''
image=127.0.0.1:$port/test/request-mirror:0.1.0
scripts/image.sh push "$image"
curl --silent --fail --dump-header "$scratch/head" --output "$scratch/manifest" \
    --header 'accept: application/vnd.oci.image.manifest.v1+json' \
    "127.0.0.1:$port/v2/test/request-mirror/manifests/0.1.0"
grep -q -i '^content-type: application/vnd.oci.image.manifest.v1+json' "$scratch/head" || die 'it is served as something else'
[ "$(sha256sum <"$scratch/manifest")" = "$digest  -" ] || die 'the digest is not the one that was printed'
skopeo copy --quiet --src-tls-verify=false "docker://$image" "oci:$scratch/pulled:latest"
config=$(jq -r '.config.digest | ltrimstr("sha256:")' <"$scratch/manifest")
layer=$(jq -r '.layers[-1].digest | ltrimstr("sha256:")' <"$scratch/manifest")
taken_by_istio "$scratch/manifest" "$scratch/pulled/blobs/sha256/$config"
tar -xzf "$scratch/pulled/blobs/sha256/$layer" -C "$scratch"
[ "$(module_sum "$scratch/plugin.wasm")" = "$(module_sum)" ] || die 'the module changed on its way'
say 'a registry gives back what was pushed: digest, media types, and the module by its sha256'
stop_registry

# refused WHAT WORDS: the push fails, and says so in the registry's words.
refused() {
    if scripts/image.sh push "127.0.0.1:$port/test/refused:1" >"$scratch/said" 2>&1; then
        die "$1 is reported as done"
    fi
    grep -q "is refused: .*$2" "$scratch/said" || die "$1: said only $(cat "$scratch/said")"
    say "$1: $(sed -n 's/.*is refused: //p' "$scratch/said")"
}
start_registry true ''
refused 'a registry that takes nothing' 'not allowed\|unsupported\|405'
stop_registry
echo nobody:nothing >"$scratch/htpasswd"
start_registry false "auth: { htpasswd: { realm: test, path: $scratch/htpasswd } }"
refused 'a registry that wants a password' 'skopeo login 127.0.0.1'
stop_registry
