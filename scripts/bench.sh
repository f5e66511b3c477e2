#!/bin/sh
# bench.sh [WHAT]: measures (see benches/README.md) with the distribution's own load generator and backend.
set -eu
cd "$(dirname "$0")/.."
step=bench
. scripts/lib.sh

for program in h2load nginx taskset; do
    command -v $program >/dev/null ||
        need "no $program" nghttp2-client nginx-light util-linux
done
[ "${1:-}" != instructions ] || command -v valgrind >/dev/null || need 'no valgrind' valgrind
[ "$(nproc)" -ge 2 ] || die 'needs two cores: one for Envoy, one for the load and the backends'

for what in ${1:-cost latency}; do
    cargo bench --quiet --bench mirror -- "$what"
done
