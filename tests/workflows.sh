#!/usr/bin/env bash
# The workflows, which only GitHub can run, are YAML and call make targets that there are.
set -euo pipefail
cd "$(dirname "$0")/.."
export step=flows
. scripts/lib.sh

python=python3
$python -c 'import yaml' 2>/dev/null || python=/usr/bin/python3
$python -c 'import yaml' 2>/dev/null || need 'no Python that reads YAML' python3 python3-yaml

steps=$($python -c '
import sys, yaml
for path in sys.argv[1:]:
    for job in yaml.safe_load(open(path))["jobs"].values():
        print(*(step["run"] for step in job["steps"] if "run" in step), sep="\n")
' .github/workflows/*.yaml)
mapfile -t targets < <(grep -o '\bmake [a-z ]*[a-z]' <<<"$steps" | sed 's/^make //' | tr ' ' '\n' | sort -u)
for target in "${targets[@]}"; do
    grep -q "^$target:" Makefile || die "a workflow calls make $target, which there is not"
done
say "the workflows are YAML, and make has ${targets[*]}"
