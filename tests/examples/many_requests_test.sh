#!/bin/bash
# The example's texts are those that the command line generates one by one.
set -eu

many_requests=$1
weft=$2

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

texts=$("$many_requests")
[ "$(grep -c '  \[' <<<"$texts")" = 6 ] || fail "not six texts: $texts"
text=$(grep '^It is a truth.*  \[' <<<"$texts")
text=${text%  \[*}
want=$("$weft" run -p "It is a truth" -n 40 --temperature 0 --quiet)
case "It is a truth$want" in
  "$text"*) ;;
  *) fail "generated '$text', weft run says '$want'" ;;
esac
[ "$(grep -c '^It is' <<<"$texts")" = 3 ] || fail "not two more choices: $texts"
if message=$("$many_requests" /no/such/model.gguf 2>&1); then
  fail "loaded a model that does not exist"
fi
case $message in
  */no/such/model.gguf*) ;;
  *) fail "the error does not name the file: $message" ;;
esac
echo PASSED
