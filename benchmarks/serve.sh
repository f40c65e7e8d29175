#!/bin/sh
# What a server gives 1, 4 and 16 clients at a time: throughput and latency, of weft
# and of other engines on the same file, one after the other, as one table.
#   benchmarks/serve.sh MODEL.gguf [--prompt N] [--generate N] [--threads N]
#                       [--requests N] [--clients N,N,..] [--temperature T]
#                       [--engines weft,llama-server,node-llama-cpp]
# Each client sends --requests streamed completions, one after the other, of --prompt
# random ids and --generate tokens. Runs `weft serve` (WEFT, or it is built), a
# `llama-server` on PATH or in LLAMA_SERVER, and node-llama-cpp, if node and npm are
# there (in WEFT_PEERS, as of peers.sh), which has no server: its rows are in process,
# without HTTP. The machine should be idle; the last column tells what the clients
# themselves took of one CPU. Times are milliseconds; the ratio is weft's tokens/s to
# the other's.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  echo "benchmarks/serve.sh: $1: see its first lines" >&2
  exit 2
}

model=
prompt=128 generate=64 threads=$(nproc) requests=4 clients=1,4,16 temperature=0
engines=weft,llama-server,node-llama-cpp
while [ $# -gt 0 ]; do
  case $1 in
    --prompt | --generate | --threads | --requests)
      [ $# -gt 1 ] || usage "$1 needs a number"
      case $2 in '' | *[!0-9]* | 0) usage "$1: '$2' is no number from 1" ;; esac
      eval "${1#--}=$2"
      shift
      ;;
    --clients)
      [ $# -gt 1 ] || usage "$1 needs numbers"
      case ,$2, in *[!0-9,]* | *,,* | *,0*) usage "$1: '$2' are no numbers from 1" ;; esac
      clients=$2
      shift
      ;;
    --temperature)
      [ $# -gt 1 ] || usage "$1 needs a number"
      case $2 in '' | *[!0-9.]*) usage "$1: '$2' is no number from 0" ;; esac
      temperature=$2
      shift
      ;;
    --engines)
      [ $# -gt 1 ] || usage "$1 needs names"
      for engine in $(echo "$2" | tr , ' '); do
        case $engine in
          weft | llama-server | node-llama-cpp) ;;
          *) usage "--engines: '$engine' is none" ;;
        esac
      done
      engines=$2
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
clients=$(echo "$clients" | tr , ' ')
slots=1
for number in $clients; do
  [ "$number" -le "$slots" ] || slots=$number
done
# Whole pages of the KV cache of either engine.
context=$(((prompt + generate + 255) / 256 * 256))

work=$(mktemp -d)
server=
stop_server() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  server=
}
trap 'stop_server; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# NAME: says so, with the last lines that it wrote.
fail_server() {
  echo "benchmarks/serve.sh: $1 did not start:" >&2
  tail -5 "$work/log" >&2
}

wants() {
  case ,$engines, in *,"$1",*) ;; *) return 1 ;; esac
}

# NAME URL: all numbers of clients, after one round that does not count.
measure() {
  echo "$1 ..." >&2
  python3 "$root/benchmarks/serve_clients.py" "$2" --clients "$slots" --requests 1 \
    --prompt 8 --generate 2 >/dev/null
  for number in $clients; do
    python3 "$root/benchmarks/serve_clients.py" "$2" --name "$1" \
      --clients "$number" --requests "$requests" --prompt "$prompt" \
      --generate "$generate" --temperature "$temperature" >>"$work/rows"
  done
}

if wants weft; then
  weft=${WEFT:-}
  if [ -z "$weft" ]; then
    "$root/tools/run.sh" --version >/dev/null
    weft=$root/bazel-bin/cli/weft
  fi
  "$weft" serve "$model" --port 0 --slots "$slots" --context "$context" \
    --threads "$threads" >"$work/url" 2>"$work/log" &
  server=$!
  # The address is written when the model is ready.
  while [ ! -s "$work/url" ] && kill -0 "$server" 2>/dev/null; do sleep 0.1; done
  if [ ! -s "$work/url" ]; then
    fail_server "weft serve"
    exit 1
  fi
  measure weft "$(cat "$work/url")"
  stop_server
fi

llama=${LLAMA_SERVER:-$(command -v llama-server || true)}
if wants llama-server && [ -n "$llama" ]; then
  port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  "$llama" -m "$model" --host 127.0.0.1 --port "$port" -np "$slots" \
    -c $((slots * context)) -t "$threads" -ngl 0 >"$work/log" 2>&1 &
  server=$!
  url=http://127.0.0.1:$port
  until python3 -c "import urllib.request as r
r.urlopen('$url/health', timeout=5)" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
  done
  if kill -0 "$server" 2>/dev/null; then
    measure llama-server "$url"
  else
    fail_server "$llama"
  fi
  stop_server
fi

if wants node-llama-cpp; then
  peers=${WEFT_PEERS:-$HOME/.cache/weft/peers}
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "benchmarks/serve.sh: no node and npm: node-llama-cpp left out" >&2
  # As peers.sh: only the build for this machine's CPU; no script of a package is run.
  elif mkdir -p "$peers" && { [ -d "$peers/node_modules/node-llama-cpp" ] ||
    (cd "$peers" && npm install --silent --no-save --ignore-scripts \
      node-llama-cpp >&2); }; then
    cp "$root/benchmarks/serve_node_llama_cpp.mjs" "$peers/"
    echo "node-llama-cpp ..." >&2
    (cd "$peers" && node serve_node_llama_cpp.mjs "$model" "$threads" "$prompt" \
      "$generate" "$temperature" "$requests" $clients) >>"$work/rows" ||
      echo "benchmarks/serve.sh: node-llama-cpp failed: left out" >&2
  else
    echo "benchmarks/serve.sh: npm has no node-llama-cpp: left out" >&2
  fi
fi

[ -s "$work/rows" ] || { echo "benchmarks/serve.sh: nothing was measured" >&2; exit 1; }
echo "$(basename "$model"), $threads threads, prompt $prompt, generate $generate," \
  "$requests requests a client, temperature $temperature"
awk -F'\t' '
  BEGIN {
    printf "%-22s %7s %10s %9s %6s %17s %17s %6s %5s\n", "engine", "clients",
      "requests/s", "tokens/s", "ratio", "first p50/p99", "token p50/p99",
      "errors", "cpu"
  }
  $1 == "weft" { weft[$2] = $4 }
  {
    ratio = ($2 in weft) && $4 > 0 ? sprintf("%.2f", weft[$2] / $4) : "-"
    printf "%-22s %7d %10.2f %9.1f %6s %17s %17s %6d %5s\n", $1, $2, $3, $4,
      ratio, sprintf("%.0f/%.0f", $5, $6), sprintf("%.1f/%.1f", $7, $8), $9, $10
  }' "$work/rows"
