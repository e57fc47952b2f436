#!/usr/bin/env bash
# Installs the servers that the tests take for Google Cloud Storage and Azure, in pinned versions, into
# build/cloud_servers; does nothing when they are there. Needs Go and npm, and their usual registries.
set -euo pipefail
cd "$(dirname "$0")/.."

gcs_version=v1.56.1
azurite_lock=tools/locks/azurite
target="$PWD/build/cloud_servers"
mkdir -p "$target"

need() {
    command -v "$1" >/dev/null || { echo "$0: $1 is needed to install $2; install it, or put $2 on the PATH" >&2; exit 1; }
}

if [ "$(cat "$target/fake-gcs-server.version" 2>/dev/null)" != "$gcs_version" ]; then
    need go fake-gcs-server
    echo "== Building fake-gcs-server $gcs_version (some minutes)"
    GOBIN="$target/bin" go install "github.com/fsouza/fake-gcs-server@$gcs_version"
    echo "$gcs_version" >"$target/fake-gcs-server.version"
fi

if ! cmp -s "$azurite_lock/package-lock.json" "$target/azurite.lock"; then
    need npm azurite
    echo "== Installing Azurite (about 190 MB)"
    cp "$azurite_lock/package.json" "$azurite_lock/package-lock.json" "$target/"
    npm ci --prefix "$target" --no-audit --no-fund --ignore-scripts --loglevel=error
    cp "$azurite_lock/package-lock.json" "$target/azurite.lock"
fi
