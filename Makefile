# Every target does its own set-up and says what it does; `make help` lists them.

ENVOY_VERSION ?= 1.40.0
ENVOY_VERSIONS ?= 1.36.4 1.37.0 1.38.2 1.39.3 1.40.0
ENVOY ?= .envoy/$(ENVOY_VERSION)/envoy
REQUEST_MIRROR_WASM ?= dist/request_mirror.wasm
REQUEST_MIRROR_TRAP_WASM ?= target/trap/request_mirror.wasm
export ENVOY REQUEST_MIRROR_WASM REQUEST_MIRROR_TRAP_WASM

.DEFAULT_GOAL := help
.PHONY: demo run build envoy test check bench fuzz soak lint fmt clean help trap \
	up down image push caps matrix ship assets notes

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
	cargo test --package rig --test schema
	cargo test --example check
	cargo test --test e2e

check: ## say what CONFIG=file would mirror, or what is wrong with it (- for standard input)
	@cargo run --quiet --example check -- $(if $(CONFIG),"$(CONFIG)")

# The module of the tests that kill a VM. Its own folder: it must never be taken for the real one.
trap:
	@CARGO_TARGET_DIR=target/trap scripts/build-wasm.sh target/trap/request_mirror.wasm --features trap

lint: ## formatting, clippy (warnings are errors), and what deny.toml forbids of dependencies
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@scripts/deny.sh

bench: build envoy ## what it costs (WHAT=cost, instructions, latency, rules, workers, crowds, shared or memory, ROUNDS=60)
	@COMPARE="$(COMPARE)" scripts/bench.sh $(WHAT)

fuzz: ## look for bytes that a decoder chokes on (FUZZ_SECONDS=60)
	@scripts/fuzz.sh $(or $(FUZZ_SECONDS),60)

soak: build trap envoy ## a million requests to the worst shadows, 500 updates, crashes
	@cargo run --release --example soak
	@UPDATES=500 CRASHES=30 cargo test --test e2e -- updates_under_load crash_loop

up: ## Envoy, a primary and a shadow in Docker (GATEWAY_PORT=10000)
	@scripts/compose.sh check
	@$(MAKE) --no-print-directory build
	@scripts/compose.sh up

down: ## end what `make up` started
	@scripts/compose.sh down

image: build ## dist/oci, the module as an OCI image, for Istio and Envoy Gateway
	@scripts/image.sh build

push: ## send it to a registry (IMAGE=ghcr.io/me/request-mirror:0.1.0)
	@[ "$(IMAGE)" ] || scripts/image.sh push
	@$(MAKE) --no-print-directory image
	@scripts/image.sh push "$(IMAGE)"

caps: build envoy ## compare envoy/locked-down.yaml with what the module does
	@cargo test --test e2e -- least_set

matrix: build trap ## end-to-end tests on five Envoys, and a table of the results
	@scripts/matrix.sh $(ENVOY_VERSIONS)

ship: build envoy ## test docker-compose.yaml, the manifests and the image, for real
	tests/compose/test.sh
	tests/manifests/test.sh
	tests/image/test.sh
	tests/image/dockerfile.sh
	tests/workflows.sh

assets: image ## what a release publishes: the module, its sha256 and SBOM, the image
	@cd dist && sha256sum request_mirror.wasm > request_mirror.wasm.sha256
	@python3 scripts/sbom.py dist/request_mirror.wasm dist/request_mirror.cdx.json

notes: ## dist/notes.md, what the changelog says of TAG=v0.1.0
	@scripts/notes.sh "$(TAG)" dist/notes.md

fmt: ## format the code
	cargo fmt --all

clean: ## remove everything that was built or fetched
	rm -rf target dist .envoy .tools

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' Makefile
