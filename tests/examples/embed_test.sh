#!/bin/bash
# The example generates the same text as the command line does.
set -eu

embed=$1
weft=$2

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

prompt="It is a truth"
text=$("$embed" "$prompt")
[ -n "$text" ] || fail "no text"
want=$("$weft" run -p "$prompt" -n 20 --temperature 0 --quiet)
[ "$text" = "$want" ] || fail "generated '$text', weft run says '$want'"
if message=$("$embed" "$prompt" /no/such/model.gguf 2>&1); then
  fail "loaded a model that does not exist"
fi
case $message in
  */no/such/model.gguf*) ;;
  *) fail "the error does not name the file: $message" ;;
esac
echo PASSED
