#!/bin/bash
# The examples of extending weft run and print what they promise.
#   extending_test.sh FOLDER-OF-EXAMPLES WEFT
set -eu

examples=$(dirname "$1")
weft=$2
graphs=examples/graphs
work=${TEST_TMPDIR:?}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

expect() {  # WANT FOUND
  [ "$2" = "$1" ] || fail "wanted:
$1
found:
$2"
}

refused() {  # WORDS COMMAND...
  local words=$1 code=0 message
  shift
  message=$("$@" 2>&1 >/dev/null) || code=$?
  [ $code -ne 0 ] || fail "not refused: $*"
  case $message in
    *"$words"*) ;;
    *) fail "$*: wanted '$words', found: $message" ;;
  esac
}

expect "relu_squared_ref: 5 0 1 0
relu_squared_f32_ref: 5 0 1 0" "$("$examples/custom_op")"

expect "drop-zero-bias: 5 -> 4 nodes
y: 0.731059 0.731059
y: 0.731059 0.731059" "$("$examples/custom_pass")"

# --- Graphs from text.
run_graph=$examples/run_graph
expect "y: -0.000
y: 1.000
y: 1.000
y: 0.000" "$("$run_graph" $graphs/xor.txt $graphs/xor.numbers.txt)"
expect "score: 1.250
score: 0.125
score: 0.500
score: -0.250
score: 0.750" "$("$run_graph" $graphs/taste.txt $graphs/taste.numbers.txt |
  grep score)"
"$weft" dump --from-text $graphs/taste.txt >/dev/null || fail "weft cannot read taste.txt"
sed 's/^item .*/item = 0 1 2 3 4/' $graphs/taste.numbers.txt >"$work/n.txt"
refused "item: 4: want 0 to 3" "$run_graph" $graphs/taste.txt "$work/n.txt"
grep -v popular $graphs/taste.numbers.txt >"$work/n.txt"
refused "popular" "$run_graph" $graphs/taste.txt "$work/n.txt"
sed 's/embed(%0/no_such_op(%0/' $graphs/taste.txt >"$work/g.txt"
refused "no_such_op" "$run_graph" "$work/g.txt" $graphs/taste.numbers.txt

# --- weft with an attention of one's own.
my_weft=$examples/my_weft
expect "$(printf 'fuse-attention\nuse-windowed-attention')" \
  "$("$my_weft" dump --list-passes | grep -A1 '^fuse-attention')"
expect 4 "$("$my_weft" dump "" | grep -c ' = windowed_attention(.*kernel="windowed_attention_any_1_ref".* window=256')"
text() { "$@" run -p "It is a truth" -n 20 --temperature 0 --quiet; }
plain=$(text "$weft")
# The same sums in another order: logits are near, not equal.
logits() { "$@" eval "" --text "It is a truth universally acknowledged" --logits "$work/logits" >"$work/eval.txt"; }
logits "$weft" && mv "$work/logits" "$work/plain.logits"
logits "$my_weft" --window 100000 --slope 0
expect near "$(paste <(od -An -v -w4 -tf4 "$work/plain.logits") <(od -An -v -w4 -tf4 "$work/logits") |
  awk '{ d += ($1 - $2) ^ 2; s += $1 ^ 2 }
       END { print (NR > 1000 && s > 0 && d < 1e-3 * s ? "near" : d / s " of " NR) }')"
[ "$(text "$my_weft" --window 3)" != "$plain" ] || fail "a window of 3 changes nothing"
expect "$plain" "$("$my_weft" --window 3 run -p "It is a truth" -n 20 \
  --temperature 0 --quiet --disable-pass use-windowed-attention)"
refused "want a window" "$my_weft" --window 0 run
# Its kernel does what its op says; its pass changes what the model computes,
# and says so.
"$my_weft" --window 2 verify "" --tokens 9 >"$work/verify.txt" ||
  fail "verify does not believe the pass"
grep -q windowed_attention_any_1_ref "$work/verify.txt" ||
  fail "verify does not see the kernel"
grep -q "use-windowed-attention *ok, moves" "$work/verify.txt" ||
  fail "verify does not tell how much the pass moves"
# A plan carries what it was compiled with, and needs its program.
"$my_weft" --window 3 compile models/austen-Q8_0.gguf -o "$work/my.weft" >/dev/null
expect "$(text "$my_weft" --window 3)" \
  "$("$my_weft" run "$work/my.weft" -p "It is a truth" -n 20 --temperature 0 --quiet)"
refused "op windowed_attention" "$weft" run "$work/my.weft"
"$my_weft" compile models/austen-Q8_0.gguf --weights reference -o "$work/r.weft" >/dev/null
refused "not here: use-windowed-attention" "$weft" run "$work/r.weft"

# --- Precision by layer.
cat >"$work/shape.json" <<'JSON'
{"embedding_length": 64, "block_count": 3, "feed_forward_length": 128,
 "head_count": 2, "head_count_kv": 1, "vocabulary_size": 512,
 "context_length": 128}
JSON
"$weft" synth --shape "$work/shape.json" --type F16 -o "$work/f16.gguf" >/dev/null
expect "blk.0.ffn_down.weight Q8_0
blk.1.ffn_down.weight Q4_0
blk.2.ffn_down.weight Q4_0
kv f16: 384 bytes per token
kv q8_0,0=f32: 392 bytes per token" \
  "$("$examples/layer_precision" "$work/f16.gguf" "$work/mixed.gguf")"
"$weft" quantize "$work/f16.gguf" "$work/same.gguf" Q4_0 --tensor-type 'blk.0.*=Q8_0' >/dev/null
cmp "$work/mixed.gguf" "$work/same.gguf" || fail "the command line makes another file"
"$weft" inspect "$work/mixed.gguf" --kv-type q8_0,0=f32 |
  grep -q 'kv_bytes_per_token *392' || fail "inspect counts other bytes"

echo PASSED
