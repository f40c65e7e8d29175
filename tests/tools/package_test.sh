#!/bin/bash
# A packaged folder runs by itself: nothing from the environment, no library but
# its own and those of the base system.
set -eu

binary=$1
library=$2
folder=$TEST_TMPDIR/package
tools/package.sh --built "$binary" "$library" "$folder"

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

# A program in C, with nothing but the folder.
cat >"$TEST_TMPDIR/ask.c" <<'END'
#include "weft.h"
static void take(const weft_event* event, void* count) {
  *(size_t*)count += event->token_count;
}
int main(void) {
  weft_engine* engine;
  weft_request request;
  size_t count = 0;
  if (weft_load(NULL, NULL, &engine) != WEFT_OK) return 1;
  weft_request_init(&request, sizeof request);
  request.text = "It is a truth";
  request.max_tokens = 3;
  request.ignore_end_of_text = 1;
  if (weft_generate(engine, &request, take, &count) != WEFT_OK) return 2;
  weft_free(engine);
  return count == 3 ? 0 : 3;
}
END
cc -I"$TEST_TMPDIR/moved/include" "$TEST_TMPDIR/ask.c" -o "$TEST_TMPDIR/ask" \
  -L"$TEST_TMPDIR/moved/lib" -lweft -Wl,-rpath,"$TEST_TMPDIR/moved/lib" \
  -Wl,--allow-shlib-undefined
env -i "$TEST_TMPDIR/ask" || fail "the C program: $?"

# A folder that is something else is left alone.
mkdir "$TEST_TMPDIR/other"
touch "$TEST_TMPDIR/other/file"
if tools/package.sh --built "$binary" "$library" "$TEST_TMPDIR/other" 2>/dev/null; then
  fail "replaced a folder that is no package"
fi
[ -e "$TEST_TMPDIR/other/file" ] || fail "deleted a file"
echo PASSED
