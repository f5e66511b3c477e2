#!/bin/sh
# fuzz.sh SECONDS: looks for bytes that a decoder chokes on, with all targets side by side. It starts
# from fuzz/corpus and from what earlier runs have found.
set -eu
cd "$(dirname "$0")/.."
step=fuzz
. scripts/lib.sh

command -v c++ >/dev/null || need 'no C++ compiler for libFuzzer' g++

# What `cargo fuzz` asks of LLVM too, and any stable Rust can: to count which edges an input takes, and
# to tell what its bytes are compared with. No sanitizer: what is fuzzed is safe Rust, and runs ten
# times as often.
for argument in level=4 inline-8bit-counters pc-table trace-compares; do
    RUSTFLAGS="${RUSTFLAGS:-} -Cllvm-args=-sanitizer-coverage-$argument"
done
export RUSTFLAGS="$RUSTFLAGS -Cpasses=sancov-module --cfg fuzzing"

folder=${CARGO_TARGET_DIR:-target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p') # named, so that build scripts are built without all that
cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target-dir "$folder" --target "$host"

fuzz() {
    mkdir -p "$folder/$1"
    "$folder/$host/release/$1" "$folder/$1" "fuzz/corpus/$1" -artifact_prefix="$folder/$1-" \
        -max_total_time="$2" -max_len=4096 -timeout=5 >"$folder/$1.log" 2>&1
}

targets='configuration budget head rules'
for target in $targets; do
    fuzz "$target" "$1" &
done
wait

found=
for target in $targets; do
    if told=$(grep '^Done' "$folder/$target.log"); then
        say "$target: $told"
        continue
    fi
    found="$found $target"
    tail -n 30 "$folder/$target.log" >&2
    input=$(sed -n 's/.*Test unit written to //p' "$folder/$target.log")
    [ ! -e "$input" ] || say "$input in base64: $(base64 <"$input" | tr -d '\n')" >&2
done
[ -z "$found" ] || die "found something in$found: $folder/TARGET.log"
