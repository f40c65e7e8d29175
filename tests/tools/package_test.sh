#!/bin/bash
# A packaged folder runs by itself: nothing from the environment, no library but
# its own and those of the base system. So does the archive of it; and the package for
# Debian is one that lintian finds nothing wrong with, where that is installed.
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

# The archive has the same under its own name, and fetches models with a library of
# its own: nobody answers here.
mkdir "$TEST_TMPDIR/unpacked"
tar -C "$TEST_TMPDIR/unpacked" -xzf "$TEST_TMPDIR"/weft-*-linux-*.tar.gz
unpacked=$(echo "$TEST_TMPDIR"/unpacked/weft-*)
diff -r "$folder" "$unpacked" || fail "the archive is not the folder"
why=$(env -i HF_ENDPOINT=http://127.0.0.1:1 WEFT_CACHE="$TEST_TMPDIR/cache" \
  LD_DEBUG=libs LD_DEBUG_OUTPUT="$TEST_TMPDIR/pulled" \
  "$unpacked/weft" pull owner/name 2>&1) && fail "pulled from nobody"
case $why in
  *"ailed to connect"*) ;;
  *) fail "$why" ;;
esac
grep -h 'calling init' "$TEST_TMPDIR"/pulled.* | grep -q "$unpacked/lib/libcurl.so.4" ||
  fail "another libcurl"
[ -s "$unpacked/share/weft.1" ] || fail "no man page"

package=$(echo "$TEST_TMPDIR"/weft_*.deb)
dpkg-deb --contents "$package" >"$TEST_TMPDIR/contents"
for path in usr/bin/weft usr/share/man/man1/weft.1.gz etc/default/weft \
  lib/systemd/system/weft.service usr/share/doc/weft/copyright \
  usr/share/bash-completion/completions/weft \
  usr/share/zsh/vendor-completions/_weft \
  usr/share/fish/vendor_completions.d/weft.fish; do
  grep -q " \./$path\$" "$TEST_TMPDIR/contents" || fail "no $path in the package"
done
dpkg-deb -x "$package" "$TEST_TMPDIR/installed"
env -i "$TEST_TMPDIR/installed/usr/bin/weft" run -n 1 --quiet >/dev/null ||
  fail "the package's program"
dpkg-deb --field "$package" Depends | grep -q libdnnl || fail "depends on no oneDNN"
if command -v lintian >/dev/null; then
  found=$(lintian --allow-root --fail-on error,warning "$package" 2>&1) ||
    fail "lintian: $found"
fi

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
