#!/bin/bash
# The benchmark of kernels runs, and says rates and shares.
set -eu

bench=$1
fail() { echo "FAILED: $1" >&2; exit 1; }

out=$("$bench" --benchmark_filter='^rms_norm_ref' --rows 1 --threads 1 \
  --benchmark_min_time=0.001 --benchmark_format=json) || fail "exit code $?"
for want in '"name": "rms_norm_ref/rows:1/real_time"' '"GB/s"' '"Gop/s"' \
  '"share%"' '"reads":'; do
  grep -qF "$want" <<< "$out" || fail "no $want in: $out"
done

code=0
"$bench" --rows 0 > /dev/null 2>&1 || code=$?
[ "$code" = 2 ] || fail "--rows 0: exit code $code, want 2"
echo PASSED
