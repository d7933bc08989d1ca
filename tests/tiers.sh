# Run lint and every tier, also when one fails; end with a table of results and seconds.
#
# A JVM leaves much of two cores idle: Spark runs beside what compares with pylance, and its output
# follows in one piece. Begun with the browser tests it was the longest, alone at the end, and a
# browser that shares the cores with it is late.
set -u

results=$(mktemp)
beside=$(mktemp)
trap 'rm -f "$results" "$beside"' EXIT
began=$(date +%s)

run() {
    start=$(date +%s)
    echo
    echo "==> $1"
    if ${MAKE:-make} --no-print-directory "$1"; then result=passed; else result=FAILED; fi
    printf '  %-13s %5d s  %s\n' "$1" $(($(date +%s) - start)) "$result" >>"$results"
}

run test-fast
run test-spark >"$beside" 2>&1 &
trap 'trap "" TERM; kill 0; exit 130' INT # what runs in the background ignores Ctrl-C
run test-interop
run test-ui
run lint
wait
cat "$beside"

echo
cat "$results"
printf '  %-13s %5d s\n' total $(($(date +%s) - began))
failed=$(awk '/FAILED$/ { printf " %s", $1 }' "$results")
if [ -n "$failed" ]; then
    echo "failed:$failed" >&2
    exit 1
fi
