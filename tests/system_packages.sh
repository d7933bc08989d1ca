#!/bin/sh
# Install the system packages that some tests need, when they are missing and we may: Debian's
# Chromium for tests/ui, a Java runtime for tests/spark, Redis and PostgreSQL for the manifest
# stores. Elsewhere say what is missing and why it matters; the tests that need it then skip with
# the same reason. Never fails.
set -u

here=$(dirname "$0")

can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

apt_install() {
    echo "installing $* (system packages)"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq install --yes --no-install-recommends "$@"; } \
        </dev/null >/dev/null || echo "apt-get could not install $*"
}

has_browser() {
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then return; fi
    done
    return 1
}

# Chromium without its own windows takes a quarter of the processor time of a whole one, which does
# as well. Not every distribution has the package.
need_chromium() {
    if has_browser chromium-headless-shell; then return; fi
    # Without a font every text in a screenshot is a row of boxes.
    if can_install; then apt_install chromium-headless-shell fonts-dejavu-core; fi
    if has_browser chromium-headless-shell chromium chromium-browser google-chrome; then return; fi
    if can_install; then
        apt_install chromium fonts-dejavu-core
    else
        echo "browser tests will be skipped: Chromium is missing, and only root with apt-get can" \
            "install it from here (apt install chromium-headless-shell fonts-dejavu-core)"
    fi
}

need_java() {
    if command -v java >/dev/null 2>&1; then return; fi
    if can_install; then
        apt_install openjdk-17-jre-headless
    else
        echo "Spark tests will be skipped: Java is missing, and only root with apt-get can" \
            "install it from here (apt install openjdk-17-jre-headless)"
    fi
}

# Tests start servers of their own on free ports, from the programs of these packages.
need_databases() {
    missing=""
    command -v redis-server >/dev/null 2>&1 || missing="redis-server"
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
    if [ -z "$missing" ]; then return; fi
    if can_install; then
        # shellcheck disable=SC2086  # two packages, two words
        apt_install $missing
    else
        echo "tests of manifest stores in them will be skipped: missing $missing, and only root" \
            "with apt-get can install that from here (apt install redis-server postgresql)"
    fi
}

if [ -d "$here/interop/remote" ]; then need_databases; fi
if [ -d "$here/ui" ]; then need_chromium; fi
if [ -d "$here/spark" ]; then need_java; fi
exit 0
