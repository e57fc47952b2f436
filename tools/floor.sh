#!/usr/bin/env bash
# Runs the tests without Spark on the oldest packages that pyproject.toml allows, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venvs/floor
echo "== Oldest packages: $(grep -oE '^(pyarrow|numpy|numba|fastavro|sqlglot)==[0-9.]+' tools/locks/floor.lock | tr '\n' ' ')"
tools/bootstrap.sh "$venv" tools/locks/floor.lock 12
"$venv/bin/python" -m pytest tests/unit tests/golden tests/property -m "not spark and not interop and not long" \
    -n "${PYTEST_WORKERS:-2}" --dist worksteal
