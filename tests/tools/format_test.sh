#!/bin/bash
# tools/format.sh formats the files that it is given, and refuses what is none.
set -eu

format=$PWD/$1
if ! command -v clang-format >/dev/null; then
  echo "SKIPPED: needs Debian's package clang-format"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

printf 'int  a ;\n' >a.cc
printf 'int  b ;\n' >b.cc
echo text >c.txt
for wrong in --chek c.txt absent.cc; do
  code=0
  "$format" "$wrong" 2>error || code=$?
  [ $code = 2 ] || fail "$wrong: exit $code"
  grep -q -- "$wrong" error || fail "$wrong: $(cat error)"
done
! "$format" --check a.cc 2>/dev/null || fail "--check takes what is not formatted"
[ "$(cat a.cc)" = 'int  a ;' ] || fail "--check changed a.cc"
"$format" a.cc
[ "$(cat a.cc)" = 'int a;' ] || fail "a.cc: $(cat a.cc)"
[ "$(cat b.cc)" = 'int  b ;' ] || fail "b.cc was not named"
"$format" --check a.cc || fail "--check refuses what is formatted"
echo PASSED
