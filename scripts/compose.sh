#!/bin/sh
# compose.sh check|up|down: docker-compose.yaml with whichever Compose there is.
set -eu
cd "$(dirname "$0")/.."
step=$1
. scripts/lib.sh

patience=120 # seconds until every container is healthy; waited for in full only by a broken one

if docker compose version >/dev/null 2>&1; then
    compose='docker compose'
elif docker-compose version >/dev/null 2>&1; then
    compose=docker-compose
else
    compose=
fi

# What `make up` needs, said before anything is built.
check() {
    step=up
    command -v docker >/dev/null || die 'no Docker: install it, or run make demo, which needs none'
    [ "$compose" ] ||
        die 'Docker has no Compose: install docker-compose-plugin, or run make demo, which needs none'
    why=$(docker info 2>&1 >/dev/null) ||
        die "no Docker engine: start it, or run make demo, which needs none ($(echo "$why" | tail -n 1))"
}

up() {
    say 'starting Envoy, a primary and a shadow (the first time, Docker fetches the images)'
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # Anew each time: a module or configuration that changed does not count as a change to Compose.
    if ! $compose up --detach --force-recreate >"$log" 2>&1; then
        taken GATEWAY_PORT "${GATEWAY_PORT:-10000}"
        taken ADMIN_PORT "${ADMIN_PORT:-9901}"
        taken PROMETHEUS_PORT "${PROMETHEUS_PORT:-9090}"
        cat "$log" >&2
        give_up "$compose up failed"
    fi
    waited=0
    until healthy; do
        [ ! "$broken" ] || give_up "$broken"
        [ $waited != $patience ] || give_up "not everything is healthy after $patience seconds"
        sleep 1
        waited=$((waited + 1))
    done
    say "a request:    curl localhost:${GATEWAY_PORT:-10000}/api/orders -d hello"
    say "its copy:     $compose logs -f shadow"
    say "the counters: curl -s 'localhost:${ADMIN_PORT:-9901}/stats?filter=request_mirror'"
    case ,${COMPOSE_PROFILES:-}, in
    *,metrics,*) say "the alerts:   http://localhost:${PROMETHEUS_PORT:-9090}/alerts" ;;
    esac
    say 'the end:      make down'
}

# Whether every container is; `broken` tells of one that will never be.
healthy() {
    broken=
    for container in $($compose ps --all --quiet); do
        state=$(docker inspect --format \
            '{{ .State.Status }} {{ .State.Health.Status }} {{ .Name }}' "$container")
        case $state in
        'running healthy '*) ;;
        'running unhealthy '*) broken="${state##*/} is unhealthy" ;;
        exited* | dead*) broken="${state##*/} has ended" ;;
        *) return 1 ;;
        esac
    done
    [ ! "$broken" ]
}

# taken VARIABLE PORT: ends with the remedy if this port is what Docker complained of.
taken() {
    grep -q -E "127\.0\.0\.1:$2[: ].*(already allocated|already in use)" "$log" || return 0
    remove
    die "port $2 is taken: choose another, such as $1=$(($2 + 1)) make up"
}

give_up() {
    $compose logs --tail 20 >&2
    remove
    die "$1; what had started is removed"
}

remove() { COMPOSE_PROFILES=metrics $compose down --volumes --remove-orphans >/dev/null 2>&1; }

down() {
    step=up check
    step=down
    remove || die "$compose down failed: run it to see why"
    say 'containers and network are removed'
}

case $step in
check | up | down) $step ;;
*) die 'usage: compose.sh check|up|down' ;;
esac
