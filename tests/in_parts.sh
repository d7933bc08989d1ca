#!/bin/sh
# Run a pytest command as several processes, each with a part of the test files (`--part`):
# `sh in_parts.sh COUNT COMMAND...`. The output of each part comes in one piece.
#
# For a tier of many short tests: processes that take single tests from a common list collect all of
# them each, and tell each other of every test.
set -u

count=$1
shift
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
trap 'trap "" TERM; kill 0; exit 130' INT
part=2
others=
while [ "$part" -le "$count" ]; do
    "$@" --part "$part/$count" >"$outputs/$part" 2>&1 &
    others="$others $part:$!"
    part=$((part + 1))
done

# Status 5: `-k` or `-m` left no test of this part.
status=0
"$@" --part "1/$count" || [ $? -eq 5 ] || status=1
for other in $others; do
    wait "${other#*:}" || [ $? -eq 5 ] || status=1
    cat "$outputs/${other%%:*}"
done
exit $status
