#!/bin/bash
# The README shows what these commands print.
set -eu

weft=$PWD/$1
grep -qw avx2 /proc/cpuinfo || { echo "no AVX2: other last bits"; exit 0; }

# The lines of the README below a command, to the end of the block or the next one.
shown() {
  awk -v command="\$ tools/run.sh $1" '
    found && (/^```/ || /^\$/) { exit }
    found { print }
    $0 == command { found = 1 }' README.md
}

check() {  # COMMAND, as it stands there
  local want
  want=$(shown "$1")
  [ -n "$want" ] || { echo "FAILED: the README does not show: $1" >&2; exit 1; }
  local found
  found=$(eval "\"$weft\" $1" 2>/dev/null)
  if [ "$found" != "$want" ]; then
    printf 'FAILED: %s\nshown:\n%s\nprinted:\n%s\n' "$1" "$want" "$found" >&2
    exit 1
  fi
}

check 'run -p "She was not at all" -n 40 --seed 7'
check 'eval models/austen-Q8_0.gguf --text "It is a truth" --json'
echo PASSED
