#!/bin/bash
# README.md and docs/ show what commands print, and no command that weft does not
# take.
set -eu

weft=$PWD/$1
documents=(README.md docs/*.md)

# Every command of weft in a block of code is parsed with the command's own flags:
# one flag more, which none has, must be all that is wrong with it.
parsed=0
failed=0
try() {  # DOCUMENT LINE-OF-CODE
  local line=$2 words
  # From the last "weft" of a pipe on; without comments, files and what follows.
  [[ $line =~ ^(\$ )?(.*\| )?weft\ (.*)$ ]] || return 0
  words=${BASH_REMATCH[3]}
  words=${words%% #*}
  words=${words%% && *}
  words=${words%% > *}
  words=${words% &}
  [[ $words != --* && $words != '#'* && $words != ' '* ]] || return 0
  eval "set -- $words"
  local found
  found=$("$weft" "$@" --no-such-flag 2>&1 </dev/null) || true
  case $found in
    "weft: The following argument was not expected: --no-such-flag"*)
      parsed=$((parsed + 1)) ;;
    *)
      printf 'FAILED: %s: %s\n%s\n' "$1" "$line" "$found" >&2
      failed=1 ;;
  esac
}
for document in "${documents[@]}"; do
  code=no
  while IFS= read -r line; do
    case $line in
      '```'*) [ $code = no ] && code=yes || code=no ;;
      *) [ $code = no ] || try "$document" "$line" ;;
    esac
  done <"$document"
done
[ $failed = 0 ] || exit 1
[ $parsed -ge 40 ] || { echo "FAILED: only $parsed commands were found" >&2; exit 1; }

# One way to call it in docs/: README.md says what weft stands for.
if grep -n 'tools/run\.sh [a-z]' docs/*.md; then
  echo "FAILED: docs/ say weft" >&2
  exit 1
fi

# Links to files.
for document in "${documents[@]}"; do
  while IFS= read -r target; do
    [ -e "$(dirname "$document")/$target" ] ||
      { echo "FAILED: $document: no $target" >&2; exit 1; }
  done < <(grep -o '](\(docs/\)\?[a-z]*\.md)' "$document" | sed 's/](\(.*\))/\1/')
done

grep -qw avx2 /proc/cpuinfo || { echo "no AVX2: other last bits"; exit 0; }

# The lines below a command, to the end of the block or the next one.
shown() {
  awk -v command="\$ weft $1" '
    found && (/^```/ || /^\$/) { exit }
    found { print }
    $0 == command { found = 1 }' "${documents[@]}"
}

check() {  # COMMAND, as it stands there
  local want
  want=$(shown "$1")
  [ -n "$want" ] || { echo "FAILED: nobody shows: $1" >&2; exit 1; }
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
