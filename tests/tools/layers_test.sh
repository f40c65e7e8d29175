#!/bin/bash
# runtime:core, which runs plans, sees neither loaders nor text, but for the
# vocabulary message. Bazel's visibility cannot say it: the core shares a package
# with the engine, which sees both.
set -eu

targets=$1
grep -q '^//graph:graph$' "$targets" || { echo "FAILED: an empty list"; exit 1; }
if grep -E '^//(loaders|text|models|cli)[:/]' "$targets" |
  grep -Ev '^//text:vocabulary(_proto|_proto_generated|_proto_source|\.proto|\.pb\.(h|cc))$'; then
  echo "FAILED: //runtime:core sees the targets above" >&2
  exit 1
fi
echo PASSED
