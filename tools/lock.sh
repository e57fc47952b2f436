#!/usr/bin/env bash
# Writes every lock file: hashes of all files of each package, no index addresses.
# Versions stay as they are where they still fit. Usage: tools/lock.sh [--upgrade]
set -euo pipefail
cd "$(dirname "$0")/.."

main_lock=requirements.lock
pinned="$(mktemp)"
trap 'rm -f "$pinned"' EXIT

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
        --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" "$@"
}

echo "== $main_lock"
compile pyproject.toml --extra spark --extra demo --group dev "$@" -o "$main_lock"

# The others differ from the main lock only where their PySpark asks for it.
grep -E '^[a-z0-9]' "$main_lock" | sed 's/ *\\$//' | grep -vE '^(pyspark|py4j)==' >"$pinned"

echo "== tools/locks/build.lock"
echo setuptools | compile - -c "$pinned" --no-annotate -o tools/locks/build.lock

while read -r series _; do
    case "$series" in '' | '#'*) continue ;; esac
    echo "== tools/locks/pyspark-$series.lock"
    echo "pyspark==$series.*" | compile - pyproject.toml --extra spark --group test -c "$pinned" --no-annotate \
        "$@" -o "tools/locks/pyspark-$series.lock"
done <tools/locks/pyspark_series.txt

# The oldest versions that pyproject.toml allows of what users install; tests keep their tools.
echo "== tools/locks/floor.lock"
of_users='pyarrow|pylance|numpy|numba|fastavro|sqlglot|obstore|fsspec|typer|rich|kazoo|thrift|prometheus-client|opentelemetry-.*'
tools_pinned="$(mktemp)"
trap 'rm -f "$pinned" "$tools_pinned"' EXIT
of_those='llvmlite|importlib-metadata|zipp'
grep -vE "^($of_users|$of_those)==" "$pinned" >"$tools_pinned"
compile pyproject.toml --extra cloud --extra fsspec --extra cli --extra zookeeper --extra hive \
    --extra prometheus --extra opentelemetry --extra lance --group test -c "$tools_pinned" \
    --resolution lowest-direct --no-annotate "$@" -o tools/locks/floor.lock
