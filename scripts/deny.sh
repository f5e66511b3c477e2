#!/bin/sh
# deny.sh: what deny.toml forbids of all dependencies: licences, sources, doubles and, where the
# database of advisories is within reach, those.
set -eu
cd "$(dirname "$0")/.."
step=deny
. scripts/lib.sh

tool cargo-deny

cargo deny check bans licenses sources

# Fetched first, so that no network is not taken for an advisory, nor an advisory for no network.
if said=$(cargo deny fetch db index 2>&1); then
    cargo deny --offline check advisories
else
    say "advisories not checked, no database: $(printf %s "$said" | tail -n 1)"
fi
