#!/bin/bash
# Makes the pictures of the docs anew: docs/pictures/*.png.
#   tools/pictures.sh [FOLDER]
# Needs Debian's packages chromium, nodejs and tmux. The answers in the pictures
# are scripted: a tiny model says a given text (tests/e2e/scripted_model.h).
set -eu
. "$(dirname "$0")/bazel.sh"

out=${1:-$root/docs/pictures}
mkdir -p "$out"
for program in chromium node tmux; do
  command -v "$program" >/dev/null ||
    { echo "tools/pictures.sh: no $program: apt-get install chromium nodejs tmux" >&2; exit 1; }
done
weft_build //cli:weft //tests/e2e:scripted_model_main
weft=$root/bazel-bin/cli/weft
folder=$(mktemp -d)
server=
end() {
  [ -z "$server" ] || kill "$server"
  tmux -L weft-pictures kill-server 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

TEST_TMPDIR=$folder "$root/bazel-bin/tests/e2e/scripted_model_main" rms.gguf \
  >"$folder/path" <<'TEXT'
<think>They want code, so a **short** function: square, mean, root, divide, scale. The epsilon must not be forgotten.</think>## RMSNorm

It divides each row by the root of its mean square, and has *no mean to subtract*:

```python
def rms_norm(x, weight, eps=1e-5):
    mean_square = (x * x).mean(-1, keepdims=True)
    return x / (mean_square + eps) ** 0.5 * weight
```

| | LayerNorm | RMSNorm |
|---|:-:|:-:|
| subtracts the mean | yes | no |
| has a bias | yes | no |
| passes over a row | 2 | 1 |

1. `eps` keeps rows of zeros finite.
2. `weight` has one number for each column.

> As in [the paper](https://arxiv.org/abs/1910.07467).
TEXT
model=$(cat "$folder/path")
"$weft" serve "$model" --port 0 --model-name demo >"$folder/address" 2>/dev/null &
server=$!
until [ -s "$folder/address" ]; do sleep 0.1; done

"$weft" dump "" --format html -o "$folder/page.html"

TEST_TMPDIR=$folder "$root/bazel-bin/tests/e2e/scripted_model_main" chat.gguf \
  >"$folder/path" <<'TEXT'
It is a compiler whose input is a computation graph: operations as nodes, values as edges. It fuses, orders and places them before anything runs.
TEXT
tmux -L weft-pictures -f /dev/null new-session -d -x 100 -y 20 \
  "$weft chat '$(cat "$folder/path")'"
sleep 2
tmux -L weft-pictures send-keys "What is a graph compiler?" Enter
sleep 3
tmux -L weft-pictures send-keys "/set temperature 0" Enter
sleep 1
tmux -L weft-pictures send-keys "And what does it do with memory?"
sleep 1
tmux -L weft-pictures capture-pane -e -p >"$folder/screen.txt"

node --experimental-websocket --no-warnings "$root/tools/pictures.mjs" \
  "$(cat "$folder/address")" "$folder/page.html" "$folder/screen.txt" "$out"
