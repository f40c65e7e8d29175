#!/bin/bash
# The load on servers: a row for each engine and number of clients, requests that
# fail are counted as such, and no server is left. weft also stands in for a
# llama-server, whose flags it is given through a script.
set -eu

serve=$1
weft=$(realpath "$2")
model=$3
fail() { echo "FAILED: $1" >&2; exit 1; }

command -v python3 > /dev/null || { echo "SKIPPED: no python3"; exit 0; }

export WEFT=$weft
export LLAMA_SERVER=$TEST_TMPDIR/llama-server
stand_in() {
  cat > "$LLAMA_SERVER" <<END
#!/bin/sh
while [ \$# -gt 0 ]; do
  case \$1 in -m) model=\$2 ;; --port) port=\$2 ;; -np) slots=\$2 ;; esac
  shift
done
echo \$\$ > "$TEST_TMPDIR/pid"
exec "$weft" serve "\$model" --port "\$port" --slots "\$slots" $*
END
  chmod +x "$LLAMA_SERVER"
}

load() {
  "$serve" "$model" --clients 1,3 --requests 2 --prompt 20 --generate 5 \
    --threads 1 "$@" 2> "$TEST_TMPDIR/log" || fail "$(cat "$TEST_TMPDIR/log")"
}

stand_in
out=$(load --engines weft,llama-server)
for row in "weft 1" "weft 3" "llama-server 1" "llama-server 3"; do
  awk -v row="$row" '
    $1 " " $2 == row { found = $3 > 0 && $4 > 0 && $5 > 0 && $8 == 0 }
    END { exit !found }' <<< "$out" || fail "no row of $row without errors: $out"
done
kill -0 "$(cat "$TEST_TMPDIR/pid")" 2> /dev/null && fail "a server is left"

# The round before those that count has shorter prompts.
stand_in --max-prompt-tokens 10
out=$(load --engines llama-server)
awk '
  $1 == "llama-server" { wrong += $4 != 0 || $8 != 2 * $2; ++rows }
  END { exit wrong || rows != 2 }' <<< "$out" || fail "refusals are not errors: $out"

for wrong in "--clients 1,0" "--engines other" "--prompt none" "--what"; do
  code=0
  "$serve" "$model" $wrong > /dev/null 2>&1 || code=$?
  [ "$code" = 2 ] || fail "$wrong: exit code $code, want 2"
done
echo PASSED
