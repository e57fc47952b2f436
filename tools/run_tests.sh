#!/usr/bin/env bash
# The tests of every change: first those without Spark, then those with it, each in parallel.
# Each part collects its own folders: to collect all takes a worker twenty seconds.
# PYTEST_WORKERS sets the number of processes (auto; with Spark, whose sessions have two threads each, 2).
set -euo pipefail
cd "$(dirname "$0")/.."

JAVA_HOME="$(tools/find_java.sh)"
export JAVA_HOME
python=.venv/bin/python
found_any=no
failed=0

run() {
    local title="$1" status=0
    shift
    echo "== $title"
    "$python" -m pytest --durations=5 -m "not interop and not long" --dist worksteal "$@" || status=$?
    case "$status" in
        0) found_any=yes ;;
        5) echo "none of these tests exist yet" ;;
        130 | 2) exit "$status" ;;      # interrupted, or broken before the first test
        *)
            found_any=yes
            failed=1
            ;;
    esac
}

run "1/2 Tests without Spark" tests --ignore tests/spark --ignore tests/interop -n "${PYTEST_WORKERS:-auto}"
run "2/2 Tests with Spark" tests/spark -n "${PYTEST_WORKERS:-2}"

if [ "$found_any" = no ]; then
    echo "no tests were found" >&2
    exit 1
fi
if [ "$failed" != 0 ]; then
    echo "== Tests failed; see the summaries above" >&2
    exit 1
fi
echo "== All tests passed"
