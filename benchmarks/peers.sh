#!/bin/sh
# Other engines beside weft, on one file, one after the other, as one table.
#   benchmarks/peers.sh MODEL.gguf [--prompt N] [--generate N] [--threads N]
#                                  [--repeat N]
# Runs weft, each `llama-bench` on PATH or in LLAMA_BENCH (paths with `:` between
# them), and node-llama-cpp (npm), which brings llama.cpp as its authors build it,
# if node and npm are there. What npm brings goes to WEFT_PEERS (default
# ~/.cache/weft/peers), not into the repository. The machine should be idle.
# Rates are tokens per second, medians; ratios are weft's rate to the other's.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  echo "benchmarks/peers.sh: $1: see its first lines" >&2
  exit 2
}

model=
prompt=256 generate=32 threads=$(nproc) repeat=3
while [ $# -gt 0 ]; do
  case $1 in
    --prompt | --generate | --threads | --repeat)
      [ $# -gt 1 ] || usage "$1 needs a number"
      case $2 in '' | *[!0-9]* | 0) usage "$1: '$2' is no number from 1" ;; esac
      eval "${1#--}=$2"
      shift
      ;;
    -*) usage "unknown flag $1" ;;
    *)
      [ -z "$model" ] || usage "one MODEL.gguf only"
      model=$1
      ;;
  esac
  shift
done
[ -n "$model" ] || usage "give MODEL.gguf"
[ -r "$model" ] || usage "cannot read $model"
model=$(realpath "$model")

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# NAME PREFILL DECODE
row() {
  printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$rows"
}

echo "weft ..." >&2
"$root/tools/run.sh" bench "$model" --prompt "$prompt" --generate "$generate" \
  --threads "$threads" --repeat "$repeat" --json >"$rows.weft"
trap 'rm -f "$rows" "$rows.weft" "$rows.peer"' EXIT
# The value of "median" behind a key of one line of JSON.
median() {
  sed "s/.*\"$1\":{\"median\":\([0-9.e+-]*\).*/\1/" "$rows.weft"
}
row weft "$(median prefill_tokens_per_second)" \
  "$(median decode_tokens_per_second)"

benches=${LLAMA_BENCH:-$(command -v llama-bench || true)}
IFS=:
for bench in $benches; do
  unset IFS
  echo "$bench ..." >&2
  # CSV with a header: the average rate of the test without and with generation.
  if "$bench" -m "$model" -p "$prompt" -n "$generate" -t "$threads" \
    -r "$repeat" -ngl 0 -o csv >"$rows.peer"; then
    # Values are quoted, names are not.
    rates=$(awk -F'","' '
      NR == 1 { n = split($0, names, ","); for (i = 1; i <= n; ++i) at[names[i]] = i; next }
      { gsub(/^"|"$/, "") }
      $at["n_gen"] == 0 { prefill = $at["avg_ts"] }
      $at["n_gen"] > 0 { decode = $at["avg_ts"] }
      END { print prefill, decode }' "$rows.peer")
    row "$bench" $rates
  else
    echo "benchmarks/peers.sh: $bench failed: left out" >&2
  fi
done
unset IFS

if command -v node >/dev/null && command -v npm >/dev/null; then
  peers=${WEFT_PEERS:-$HOME/.cache/weft/peers}
  mkdir -p "$peers"
  # Only the build for this machine's CPU; no script of a package is run.
  if [ -d "$peers/node_modules/node-llama-cpp" ] ||
    (cd "$peers" && npm install --silent --no-save --ignore-scripts \
      node-llama-cpp >&2); then
    cp "$root/benchmarks/node_llama_cpp.mjs" "$peers/"
    echo "node-llama-cpp ..." >&2
    if (cd "$peers" && node node_llama_cpp.mjs "$model" "$prompt" "$generate" \
      "$threads" "$repeat") >"$rows.peer"; then
      row $(cat "$rows.peer")
    else
      echo "benchmarks/peers.sh: node-llama-cpp failed: left out" >&2
    fi
  else
    echo "benchmarks/peers.sh: npm has no node-llama-cpp: left out" >&2
  fi
else
  echo "benchmarks/peers.sh: no node and npm: node-llama-cpp left out" >&2
fi

echo "$(basename "$model"), $threads threads, prompt $prompt, generate $generate"
awk -F'\t' '
  NR == 1 { prefill = $2; decode = $3 }
  {
    if (NR == 1) printf "%-40s %10s %7s %10s %7s\n", "engine", "prefill", "ratio", "decode", "ratio"
    printf "%-40s %10.1f %7.2f %10.1f %7.2f\n", $1, $2, prefill / $2, $3, decode / $3
  }' "$rows"
