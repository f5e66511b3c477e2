#!/bin/sh
# build-wasm.sh OUT [CARGO OPTION...]: compiles the module and puts it at OUT.
set -eu
cd "$(dirname "$0")/.."
step=build
. scripts/lib.sh

target=wasm32-wasip1
refused=target/rustup-refused # what rustup said to it; not asked again before `make clean`
debian='rustc-web cargo-web rust-web-src rust-web-llvm wasi-libc lld-19'

out=$1
shift

# A panic tells the file and the line it was at. Without the part of the path that is this machine's
# own, the module is a KB smaller and names nobody's home. (cargo's name for crates.io; where it has
# another one, the paths stay long.)
crates=${CARGO_HOME:-$HOME/.cargo}/registry/src/index.crates.io-1949cf8c6b5b557f
flags=--remap-path-prefix=$crates=

has_target() { [ -d "$(rustc --print target-libdir --target $target 2>/dev/null)" ]; }

add_target() {
    command -v rustup >/dev/null || return 1
    [ ! -e $refused ] || return 1
    say "adding the Rust target $target with rustup"
    mkdir -p target
    if RUSTUP_MAX_RETRIES=1 rustup target add $target 2>$refused; then
        rm $refused
    else
        say "rustup could not: $(grep -m 1 '^error' $refused)"
        return 1
    fi
}

if has_target || add_target; then
    host=$(rustc -vV | sed -n 's/^host: //p')
    WASM_LD=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld
    compile() { cargo rustc "$@"; }
else
    command -v cargo >/dev/null || command -v apt-get >/dev/null ||
        die 'no cargo: install Rust with rustup, https://rustup.rs'
    # Debian carries the compiler, the source of std and a WASI libc, though not a built std.
    # shellcheck disable=SC2086 # a list of words
    dpkg -s $debian >/dev/null 2>&1 || need "no Rust target $target from rustup" $debian
    say "no Rust target $target: using Debian's compiler, which builds std too"
    WASM_LD=wasm-ld-19
    flags=$flags$(printf '\037')-Lnative=/usr/lib/wasm32-wasi
    compile() {
        RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc /usr/bin/cargo rustc -Z build-std=std,panic_abort "$@"
    }
fi

export WASM_LD CARGO_TARGET_WASM32_WASIP1_LINKER="$PWD/scripts/wasm-ld"
export CARGO_ENCODED_RUSTFLAGS="$flags" # \037 between them: a path may have spaces
# The cdylib alone: cargo leaves `lto` out where the library is to be an rlib as well.
compile --lib --crate-type cdylib --release --target $target "$@"

built=${CARGO_TARGET_DIR:-target}/$target/release/request_mirror.wasm
cmp -s "$built" "$out" && exit
mkdir -p "$(dirname "$out")"
cp "$built" "$out"
say "$out is ready ($(($(wc -c <"$out") / 1024)) KiB)"
