#!/usr/bin/env bash
# Prints the home of a Java that runs Spark: version MIN (17) to MAX (no limit).
# Looks at JAVA_HOME, `java` on the PATH, then the usual folders; installs one where that is allowed.
# Usage: tools/find_java.sh [MIN] [MAX]
set -euo pipefail

min="${1:-17}"
max="${2:-999}"

# Prints "VERSION HOME" of a java executable, or nothing.
describe() {
    "$1" -XshowSettings:properties -version 2>&1 | sed -n \
        -e 's/^ *java\.home = \(.*\)$/home \1/p' \
        -e 's/^ *java\.specification\.version = \(.*\)$/version \1/p' |
        sort -r | { read -r _ version && read -r _ home && echo "$version $home"; } || true
}

candidates() {
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; fi
    command -v java || true
    ls -d /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java 2>/dev/null || true
    if [ -x /usr/libexec/java_home ]; then
        local home
        home="$(/usr/libexec/java_home -v "$min+" 2>/dev/null)" && echo "$home/bin/java"
    fi
    return 0
}

find_fitting() {
    local java found version
    while read -r java; do
        [ -x "$java" ] || continue
        found="$(describe "$java")"
        version="${found%% *}"
        case "$version" in '' | *[!0-9]*) continue ;; esac     # 1.8 and the like
        if [ "$version" -ge "$min" ] && [ "$version" -le "$max" ]; then
            echo "${found#* }"
            return 0
        fi
    done < <(candidates)
    return 1
}

if find_fitting; then exit 0; fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    echo "== No Java $min or newer found; installing the system's package" >&2
    apt-get update -q >&2 || true
    for release in 17 21; do
        if apt-get install -y -q --no-install-recommends "openjdk-$release-jre-headless" >&2; then break; fi
    done
    if find_fitting; then exit 0; fi
fi

limit="$min or newer"
if [ "$max" != 999 ]; then limit="$min to $max"; fi
cat >&2 <<TEXT
Spark needs Java $limit, and none was found. To get it:
  Debian, Ubuntu    sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL      sudo dnf install java-17-openjdk-headless
  macOS             brew install openjdk@17
  anywhere          sdk install java 17-open        (SDKMAN)
If it is somewhere else: JAVA_HOME=/path/to/java make test
TEXT
exit 1
