# Every target does its own set-up and says what it does; `make help` lists them.

ENVOY_VERSION ?= 1.40.0
ENVOY ?= .envoy/$(ENVOY_VERSION)/envoy
REQUEST_MIRROR_WASM ?= dist/request_mirror.wasm
REQUEST_MIRROR_TRAP_WASM ?= target/trap/request_mirror.wasm
export ENVOY REQUEST_MIRROR_WASM REQUEST_MIRROR_TRAP_WASM

.DEFAULT_GOAL := help
.PHONY: demo run build envoy test check lint fmt clean help trap

demo: build envoy ## show the mirror at work on a real Envoy, in under a minute
	@cargo build --example demo
	@cargo run --quiet --example demo

run: build envoy ## the same rig for your own curl, until Ctrl-C (PERCENT=100)
	@cargo build --example demo
	@cargo run --quiet --example demo -- run $(PERCENT)

build: ## dist/request_mirror.wasm, the module that Envoy loads
	@scripts/build-wasm.sh dist/request_mirror.wasm

envoy: ## the Envoy that demo, run and test use (or set ENVOY=/path/to/envoy)
	@scripts/fetch-envoy.sh $(ENVOY_VERSION) $(ENVOY)

test: build trap envoy ## unit tests, then end-to-end tests against Envoy
	cargo test --workspace --lib
	cargo test --test schema --example check
	cargo test --test e2e

check: ## say what CONFIG=file would mirror, or what is wrong with it (- for standard input)
	@cargo run --quiet --example check -- $(if $(CONFIG),"$(CONFIG)")

# The module of the tests that kill a VM. Its own folder: it must never be taken for the real one.
trap:
	@CARGO_TARGET_DIR=target/trap scripts/build-wasm.sh target/trap/request_mirror.wasm --features trap

lint: ## formatting and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

fmt: ## format the code
	cargo fmt --all

clean: ## remove everything that was built or fetched
	rm -rf target dist .envoy

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile
