# The module as an image, for who has Docker and no Rust. `make image` makes one without Docker.
#
#   docker buildx build --platform linux/amd64 --provenance=false \
#       --output type=image,name=ghcr.io/me/request-mirror:0.1.0,oci-mediatypes=true,push=true .
#
# --provenance=false, since with an attestation the result is an index of two manifests, and Istio
# refuses an index that is pinned by its digest. For the same reason: one platform.

FROM rust:1.90-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN scripts/build-wasm.sh dist/request_mirror.wasm

FROM scratch
LABEL org.opencontainers.image.title=request-mirror \
      org.opencontainers.image.licenses=Apache-2.0
# One layer, and in it a file of this name: Istio and Envoy Gateway look for no other.
COPY --from=build /source/dist/request_mirror.wasm /plugin.wasm
