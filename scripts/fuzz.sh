#!/bin/sh
# fuzz.sh SECONDS: looks for bytes that a decoder chokes on, so long for each target. It starts from
# fuzz/corpus and from what earlier runs have found.
set -eu
cd "$(dirname "$0")/.."
step=fuzz
. scripts/lib.sh

command -v cargo-fuzz >/dev/null || die 'no cargo-fuzz: cargo install --locked cargo-fuzz'
rustup toolchain list | grep -q '^nightly' || die 'no nightly: rustup toolchain install nightly'

# Without a sanitizer: what is fuzzed is safe Rust, and runs ten times as often.
options='--sanitizer none --strip-dead-code=true'
for target in configuration budget head rules; do
    found=target/fuzz/$target
    mkdir -p "$found"
    # shellcheck disable=SC2086 # a list of words
    if ! cargo +nightly fuzz run $options $target "$found" fuzz/corpus/$target -- \
        -max_total_time="$1" -max_len=4096 -timeout=5 >"$found.log" 2>&1; then
        tail -n 30 "$found.log" >&2
        die "$target has found something"
    fi
    say "$target: $(grep -m 1 '^Done' "$found.log")"
done
