#!/bin/bash
# Runs a test of the page's scripts with node.
#   node_test.sh TEST.mjs SCRIPT-OF-THE-PAGE
set -eu
if ! command -v node >/dev/null; then
  echo "SKIPPED: needs Debian's package nodejs"
  exit 0
fi
WEFT_PAGE_FOLDER=$(dirname "$PWD/$2")
export WEFT_PAGE_FOLDER
exec node --test "$1"
