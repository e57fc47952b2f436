#!/usr/bin/env bash
# Prints a Python that can make the environment: 3.11 to MAX (3.14), with venv and ensurepip.
# Usage: tools/find_python.sh [MAX_MINOR]    PYTHON=... names the one to use.
set -euo pipefail

max_minor="${1:-14}"

fits() {
    "$1" - "$max_minor" >/dev/null 2>&1 <<'PROBE'
import ensurepip, sys, venv
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, int(sys.argv[1])))
PROBE
}

find_fitting() {
    local candidate
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python3.14}; do
        if command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

if find_fitting; then exit 0; fi

if [ -z "${PYTHON:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "== No Python 3.11 to 3.$max_minor with venv found; installing the system's" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 || true
    apt-get install -y -q --no-install-recommends python3 python3-venv >&2 || true
    if find_fitting; then exit 0; fi
fi

cat >&2 <<TEXT
pyhudi needs Python 3.11 to 3.$max_minor with its venv module${PYTHON:+ (PYTHON is set to '$PYTHON')}. To get it:
  Debian, Ubuntu    sudo apt-get install python3 python3-venv
  Fedora, RHEL      sudo dnf install python3.12
  macOS             brew install python@3.12
If it has another name: PYTHON=/path/to/python make test
TEXT
exit 1
