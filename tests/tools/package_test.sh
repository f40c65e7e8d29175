#!/bin/bash
# A packaged folder runs by itself: nothing from the environment, no library but
# its own and those of the base system.
set -eu

binary=$1
folder=$TEST_TMPDIR/package
tools/package.sh --binary "$binary" "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

[ -s "$folder/LICENSE" ] || fail "no licence"
[ -s "$folder/licenses/libgomp1" ] || fail "no licence of OpenMP"
[ -e "$folder/lib/libgomp.so.1" ] || fail "no OpenMP"

# Moved elsewhere, and called through a link.
mv "$folder" "$TEST_TMPDIR/moved"
text=$(env -i LD_DEBUG=libs LD_DEBUG_OUTPUT="$TEST_TMPDIR/loaded" \
  "$TEST_TMPDIR/moved/weft" run -p "It is a truth" -n 5 --temperature 0 --quiet)
[ -n "$text" ] || fail "no text"
grep -h 'calling init' "$TEST_TMPDIR"/loaded.* | grep -o '/.*' |
  grep -Ev '/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so' |
  while read -r library; do
    case $library in
      "$TEST_TMPDIR"/moved/lib/*) ;;
      *) fail "loads $library" ;;
    esac
  done

# A folder that is something else is left alone.
mkdir "$TEST_TMPDIR/other"
touch "$TEST_TMPDIR/other/file"
if tools/package.sh --binary "$binary" "$TEST_TMPDIR/other" 2>/dev/null; then
  fail "replaced a folder that is no package"
fi
[ -e "$TEST_TMPDIR/other/file" ] || fail "deleted a file"
echo PASSED
