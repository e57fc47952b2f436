#!/usr/bin/env bash
# Makes a Python environment from a lock file; does nothing when it is up to date.
# Usage: tools/bootstrap.sh [VENV] [LOCK] [MAX_PYTHON_MINOR]
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${1:-.venv}"
lock="${2:-requirements.lock}"
max_minor="${3:-14}"
build_lock=tools/locks/build.lock
stamp="$venv/.installed.lock"       # the locks that were installed, and where the project lay
wanted="$(mktemp)"
trap 'rm -f "$wanted"' EXIT
cat "$build_lock" "$lock" >"$wanted"
pwd >>"$wanted"                     # a moved environment is made up again: the editable install knows its place

works() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }

if works && cmp -s "$wanted" "$stamp"; then exit 0; fi

if ! works; then
    python="$(tools/find_python.sh "$max_minor")"
    echo "== [1/4] Making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
else
    echo "== [1/4] Updating $venv"
fi

pip_install() { "$venv/bin/python" -m pip install --disable-pip-version-check "$@"; }

echo "== [2/4] Installing the build tool from $build_lock"
pip_install --require-hashes -r "$build_lock"
echo "== [3/4] Installing packages from $lock (PySpark alone is about 450 MB: this takes some minutes)"
# Python compiles what it imports: to compile all takes half a minute.
pip_install --require-hashes --no-deps --no-build-isolation --use-pep517 --no-compile -r "$lock"
echo "== [4/4] Installing pyhudi itself, editable"
pip_install --no-deps --no-build-isolation --editable .
"$venv/bin/python" -m compileall -q src

cp "$wanted" "$stamp"
echo "== $venv is ready"
