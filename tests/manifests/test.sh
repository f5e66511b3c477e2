#!/usr/bin/env bash
# The manifests for Istio and Envoy Gateway have the shape that the clusters' own definitions ask for,
# and the filter's own code takes the configuration in them.
set -euo pipefail
cd "$(dirname "$0")/../.."
export step=kube
. scripts/lib.sh

manifests=(envoy/istio/*.yaml envoy/gateway/*.yaml)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

able() { "$1" -c 'import jsonschema, yaml' 2>/dev/null; }
python=python3
able $python || python=/usr/bin/python3
able $python || need 'no Python that validates YAML' python3 python3-jsonschema python3-yaml
validate() { $python tests/manifests/validate.py "$@"; }

# refused WHAT MANIFEST SED: the manifest so changed does not pass.
refused() {
    sed "$3" "$2" >"$scratch/changed.yaml"
    ! cmp -s "$2" "$scratch/changed.yaml" || die "$2 has no place for $1"
    ! validate "$scratch/changed.yaml" 2>/dev/null || die "$1 passes in $2"
}

validate "${manifests[@]}" || die 'a manifest is not what its definition asks for'
say "${manifests[*]}: as their definitions ask"

policy=envoy/gateway/envoyextensionpolicy.yaml
refused 'an unknown field' envoy/istio/wasmplugin.yaml 's/failStrategy:/failurePolicy:/'
refused 'an unknown value' envoy/istio/wasmplugin.yaml 's/FAIL_OPEN/OPEN/'
refused 'an unknown field' $policy 's/failOpen:/failStrategy:/'
refused 'a wrong type' $policy 's/failOpen: true/failOpen: yes please/'
refused 'an unknown field of a route' $policy 's/hostnames:/hosts:/'
refused 'an unknown kind' $policy 's/kind: EnvoyExtensionPolicy/kind: WasmPlugin/'
say 'and would not pass with a typo'

for manifest in "${manifests[@]}"; do
    cargo run --quiet --example check -- "$manifest" >"$scratch/words" ||
        die "$manifest: the filter rejects this configuration"
    grep -q ' % to ' "$scratch/words" || die "$manifest: mirrors nothing"
done
say 'and the filter mirrors what they say'
