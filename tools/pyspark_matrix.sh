#!/usr/bin/env bash
# Runs the Spark tests on every supported PySpark, each in an environment of its own.
# Usage: tools/pyspark_matrix.sh [SERIES...]      e.g. 3.5 4.2; none: all of them
set -euo pipefail
cd "$(dirname "$0")/.."

run_series() {
    local series="$1" python_max="$2" java_max="$3" venv=".venvs/pyspark-$1" java_home
    tools/bootstrap.sh "$venv" "tools/locks/pyspark-$series.lock" "$python_max" || return 1
    java_home="$(tools/find_java.sh 17 "$java_max")" || return 1
    JAVA_HOME="$java_home" "$venv/bin/python" -m pytest tests -m "spark and not interop and not long" \
    -n "${PYTEST_WORKERS:-2}" --dist worksteal
}

summary=""
failed=0
while read -r series python_max java_max <&3; do
    case "$series" in '' | '#'*) continue ;; esac
    if [ $# -gt 0 ] && [[ " $* " != *" $series "* ]]; then continue; fi
    echo "== PySpark $series"
    if run_series "$series" "$python_max" "$java_max"; then
        summary+="PySpark $series: passed"$'\n'
    else
        summary+="PySpark $series: FAILED"$'\n'
        failed=1
    fi
done 3<tools/locks/pyspark_series.txt

if [ -z "$summary" ]; then
    echo "no such PySpark series: $*; known ones are in tools/locks/pyspark_series.txt" >&2
    exit 1
fi
printf '== Summary\n%s' "$summary"
exit "$failed"
