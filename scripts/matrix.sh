#!/usr/bin/env bash
# matrix.sh VERSION...: the end-to-end tests on each of these Envoys, and a table of the results.
# TESTS="copies:: counters::" runs only those.
set -euo pipefail
cd "$(dirname "$0")/.."
export step=matrix
. scripts/lib.sh

logs=target/matrix
mkdir -p $logs
read -ra tests <<<"${TESTS:-}"
cargo test --quiet --test e2e --no-run

failed=()
rows=()
for version; do
    ENVOY=.envoy/$version/envoy
    export ENVOY
    scripts/fetch-envoy.sh "$version" "$ENVOY"
    say "Envoy $version ..."
    log=$logs/$version.log
    SECONDS=0
    if ! cargo test --test e2e -- "${tests[@]}" >"$log" 2>&1; then
        failed+=("$version")
        sed -n '/^failures:$/,$p' "$log" >&2
    fi
    counts=$(sed -n 's/^test result: .*\. \([0-9]*\) passed; \([0-9]*\) failed.*/\1 | \2/p' "$log")
    rows+=("| $version | ${counts:-none | the tests did not end} | $SECONDS s |")
done

printf '\n| Envoy | passed | failed | took |\n|---|---|---|---|\n'
printf '%s\n' "${rows[@]}"
[ ${#failed[@]} = 0 ] || die "failed on ${failed[*]}; the logs are in $logs"
