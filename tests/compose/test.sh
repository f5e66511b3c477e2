#!/usr/bin/env bash
# Drives docker-compose.yaml as users get it, on a real engine: up, requests, copies in the log,
# alerts, a dead shadow, down, nothing left. An image that cannot be pulled gets a stand-in.
set -euo pipefail
cd "$(dirname "$0")/../.."
export step=compose
. scripts/lib.sh

command -v docker >/dev/null || need 'no Docker' docker.io docker-compose
docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1 ||
    need 'Docker has no Compose' docker-compose
command -v promtool >/dev/null || need 'no promtool' prometheus
command -v curl >/dev/null || need 'no curl' curl
: "${ENVOY:=.envoy/1.40.0/envoy}"

promtool test rules prometheus/alerts.test.yaml || die 'the alerts do not do what their tests say'

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
GATEWAY_PORT=$(port) ADMIN_PORT=$(port) PROMETHEUS_PORT=$(port)
export GATEWAY_PORT ADMIN_PORT PROMETHEUS_PORT
export COMPOSE_PROJECT_NAME=request-mirror-test COMPOSE_PROFILES=metrics
project=label=com.docker.compose.project=$COMPOSE_PROJECT_NAME
scratch=$(mktemp -d)
holder= # of a port

up() { scripts/compose.sh up; }
down() { scripts/compose.sh down; }
logs() { docker logs "$(docker ps --all --quiet --filter "$project" --filter label=com.docker.compose.service="$1")" 2>&1; }
get() { curl --silent --show-error --fail --max-time 10 "$@"; }
metrics() { get "localhost:$ADMIN_PORT/stats/prometheus"; }
query() { promtool query instant "http://localhost:$PROMETHEUS_PORT" "$1"; }

clean() {
    [ -z "$holder" ] || kill "$holder"
    COMPOSE_PROFILES=metrics scripts/compose.sh down >/dev/null
    # shellcheck disable=SC2046 # a list of images
    set -- $(docker images --quiet --filter label=request-mirror.stand-in)
    [ $# = 0 ] || docker rmi --force "$@" >/dev/null
    rm -rf "$scratch"
}
trap clean EXIT

# holds WHAT COMMAND...: COMMAND succeeds before half a minute has passed.
holds() {
    local what=$1 tries=60
    shift
    until "$@" >"$scratch/output" 2>&1; do
        ((tries--)) || {
            cat "$scratch/output" >&2
            logs envoy >&2 || true
            die "not so: $what"
        }
        sleep 0.5
    done
    say "$what"
}
nothing_left() {
    [ -z "$(docker ps --all --quiet --filter "$project")" ] &&
        [ -z "$(docker network ls --quiet --filter "$project")" ] &&
        [ -z "$(docker volume ls --quiet --filter "$project")" ]
}

# present IMAGE: a real one is here, or can be had.
present() {
    docker pull --quiet "$1" >/dev/null 2>&1 ||
        [ "$(docker inspect --format '{{ index .Config.Labels "request-mirror.stand-in" }}' "$1" 2>/dev/null)" = '' ] &&
        docker inspect "$1" >/dev/null 2>&1
}
sed -n 's/^ *image: //p' docker-compose.yaml >"$scratch/images"
while read -r image; do
    present "$image" && continue
    say "cannot pull $image: a stand-in takes its place"
    case $image in
    envoyproxy/envoy:*) tests/stand-in.sh "$image" '[]' 101 "$ENVOY" "$(command -v bash)" ;;
    prom/prometheus:*) tests/stand-in.sh "$image" '["prometheus"]' 65534 "$(command -v prometheus)" "$(command -v promtool)" ;;
    *) die "no stand-in for $image" ;;
    esac
done <"$scratch/images"

up

answered() { get "localhost:$GATEWAY_PORT/api/orders?page=2" --data hello --user-agent tester | grep -x 'primary: POST /api/orders?page=2, 5 bytes of body'; }
copied() { logs shadow | grep 'POST /api/orders?page=2 body=5 .*user-agent="tester" content-type="application/x-www-form-urlencoded"'; }
counted() { metrics | grep -x 'request_mirror_completed{} 1'; }
answered >/dev/null || die 'the first request is not answered by the primary'
say 'the first request is answered by the primary'
holds 'its copy is in the log of the shadow' copied
holds 'and is counted' counted

private() { [ "$(docker inspect --format '{{ range .NetworkSettings.Ports }}{{ range . }}{{ .HostIp }} {{ end }}{{ end }}' "$(docker ps --quiet --filter "$project" --filter label=com.docker.compose.service=envoy)")" = '127.0.0.1 127.0.0.1 ' ]; }
holds 'gateway and admin page are on 127.0.0.1 only' private

all_metrics_exist() {
    grep -o -E '(expr: |\()request_mirror_[a-z_]+' prometheus/alerts.yaml | grep -o 'request_mirror_.*' | sort -u >"$scratch/named"
    [ "$(wc -l <"$scratch/named")" -gt 5 ] || return 1
    metrics | sed -n 's/^\(request_mirror_[a-z_]*\){.*/\1/p' | sort -u | comm -23 "$scratch/named" - >"$scratch/missing"
    cat "$scratch/missing"
    [ ! -s "$scratch/missing" ]
}
scraped() { query 'request_mirror_completed{job="envoy"}' | grep '=> 1 '; }
watched() { get "localhost:$PROMETHEUS_PORT/api/v1/rules" | grep RequestMirrorConfigRejected; }
holds 'Envoy has every metric that the alerts name' all_metrics_exist
holds 'Prometheus scrapes them' scraped
holds 'and watches the alerts' watched

docker stop "$(docker ps --quiet --filter "$project" --filter label=com.docker.compose.service=shadow)" >/dev/null
for _ in 1 2 3 4 5; do answered >/dev/null || die 'a dead shadow is felt'; done
say 'a dead shadow is not felt'

down
holds 'down leaves nothing' nothing_left

python3 -m http.server --bind 127.0.0.1 --directory "$scratch" "$GATEWAY_PORT" >/dev/null 2>&1 &
holder=$!
holds 'a port is taken' get "localhost:$GATEWAY_PORT"
up >"$scratch/refusal" 2>&1 && die 'up succeeds on a taken port'
kill $holder
holder=
remedy="port $GATEWAY_PORT is taken: choose another, such as GATEWAY_PORT=$((GATEWAY_PORT + 1)) make up"
holds 'up says which, and how to choose another' grep -F "$remedy" "$scratch/refusal"
holds 'and leaves nothing half-started' nothing_left

mkdir "$scratch/bin"
ln -s /usr/bin/* "$scratch/bin"
rm "$scratch"/bin/docker*
PATH=$scratch/bin make up >"$scratch/refusal" 2>&1 && die 'up succeeds without Docker'
holds 'without Docker, up points to make demo' grep 'no Docker: .*make demo' "$scratch/refusal"
DOCKER_HOST=unix:///nowhere make up >"$scratch/refusal" 2>&1 && die 'up succeeds without an engine'
holds 'without its engine, too' grep 'no Docker engine: .*make demo' "$scratch/refusal"
