#!/bin/sh
# What each pass is worth: `weft bench` with the pass off, and of fusions, with it
# alone on.
#   benchmarks/passes.sh MODEL [--only PASS] [FLAGS OF weft bench...]
# A table of tokens per second and their ratio to all passes on. Runs with all passes
# and with the change take turns, three times, and the best of each counts: others on
# the machine only make a run slower, and its speed drifts. --only measures one pass
# (`none`: no fusion at all).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  echo "benchmarks/passes.sh: $1: see its first lines" >&2
  exit 2
}

model=${1:-}
[ -n "$model" ] && [ -r "$model" ] || usage "give a MODEL that can be read"
shift
only=
if [ "${1:-}" = --only ]; then
  [ $# -gt 1 ] || usage "--only needs a pass"
  only=$2
  shift 2
fi

weft=${WEFT:-}
if [ -z "$weft" ]; then
  "$root/tools/run.sh" --version >/dev/null
  weft=$root/bazel-bin/cli/weft
fi

# Passes that change what runs; the others leave it as it is, or are needed.
fusions=$("$weft" dump --list-passes | grep '^fuse-')
passes="quantize-activations common-subexpression $fusions choose-layouts choose-kernels schedule"

# FLAGS...: prints PREFILL DECODE, the best of the run's repetitions.
rates() {
  "$weft" bench "$model" --json --quiet "$@" | sed \
    's/.*"prefill_tokens_per_second":{[^}]*"max":\([0-9.e+-]*\).*"decode_tokens_per_second":{[^}]*"max":\([0-9.e+-]*\).*/\1 \2/'
}

# NAME DISABLED FLAGS...
row() {
  name=$1 disabled=$2
  shift 2
  for turn in 1 2 3; do
    echo "$(rates "$@") $(rates --disable-pass "$disabled" "$@")"
  done | awk -v name="$name" '
    { for (i = 1; i <= 4; ++i) if ($i > best[i]) best[i] = $i }
    END {
      printf "%-36s %8.1f %8.1f %6.2f %8.1f %8.1f %6.2f\n", name, best[1],
        best[3], best[3] / best[1], best[2], best[4], best[4] / best[2] }'
}

# Fusions but the one given, with commas.
others() {
  echo "$fusions" | grep -vx "$1" | paste -sd, -
}

printf '%-36s %8s %8s %6s %8s %8s %6s\n' "$(basename "$model")" \
  prefill changed ratio decode changed ratio
for pass in $passes; do
  if [ -z "$only" ] || [ "$only" = "$pass" ]; then
    row "without $pass" "$pass" "$@"
  fi
done
if [ -z "$only" ] || [ "$only" = none ]; then
  row "without all fusions" "$(others '')" "$@"
fi
for pass in $fusions; do
  if [ -z "$only" ] || [ "$only" = "$pass" ]; then
    row "only $pass" "$(others "$pass")" "$@"
  fi
done
