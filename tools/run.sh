#!/bin/sh
# Installs what is missing, builds weft and runs it with these arguments; without
# any: `weft run`, the embedded model and its default prompt.
#   tools/run.sh
#   tools/run.sh run -p "My dear Mr. Bennet," -n 60 --seed 1
#   tools/run.sh inspect model.gguf --json
# Standard output is weft's alone.
set -eu
. "$(dirname "$0")/bazel.sh"

"$root/tools/install.sh"
weft_build //cli:weft
[ $# -gt 0 ] || set -- run
exec "$root/bazel-bin/cli/weft" "$@"
