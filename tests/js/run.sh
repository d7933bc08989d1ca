#!/bin/sh
# Check the browser modules in lance_nb/explorer with Node: `sh tests/js/run.sh lint`, `... test`, or
# `... install`, which the other two do when the lock file changed.
#
# Node is needed for these checks only, never to install or run lance_nb. Where it is missing this says
# so and skips; under CI (`CI` set) it fails, since a skip would hide that nothing was checked.
set -u
cd "$(dirname "$0")" || exit 1

skip() {
    echo "checks of the browser modules are skipped: $1" >&2
    [ -z "${CI:-}" ] && exit 0
    echo "this is CI, so it counts as a failure" >&2
    exit 1
}

command -v npm >/dev/null 2>&1 || skip "npm is missing (it comes with Node 20.19 or newer)"
node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' \
    2>/dev/null || skip "Node 20.19 or newer is needed, this is $(node --version 2>&1)"

if [ ! -e node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
    echo "installing the tools of tests/js (TypeScript, Biome, linkedom)"
    npm ci --no-audit --no-fund --loglevel=error || skip "npm could not install them"
    touch node_modules/.installed
fi

case "${1:-}" in
install) ;;
lint)
    status=0
    node_modules/.bin/tsc --project tsconfig.json || status=1
    node_modules/.bin/biome ci --colors=off --error-on-warnings ../../lance_nb/explorer . || status=1
    exit $status
    ;;
test)
    shift
    node --test --test-reporter=dot "$@" && echo "the tests of the browser modules passed"
    ;;
*)
    echo "usage: sh tests/js/run.sh lint|test|install" >&2
    exit 2
    ;;
esac
