#!/bin/sh
# What a model larger than memory makes of the disk: tokens per second under a memory
# limit of a third of the plan, with `--memory-budget` and from plain mapped memory.
#   benchmarks/streaming.sh [SHAPE [TYPE [FOLDER]]]   (olmoe-1b-7b Q4_K_M, /var/tmp)
# Makes a random model of that shape and its plan in FOLDER, on the disk that is meant,
# unless they are there. The limit is a control group's, which takes root. A table of
# tokens per second, what was read for each, and the share of the disk's rate that this
# is; the rate, and what was predicted, are those of `weft inspect --memory-budget` in
# the same run. The prediction supposes that all experts are chosen equally often; models
# have favourites, and runs of bench repeat one text (GENERATE tokens, 128), so less is read.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
shape=${1:-olmoe-1b-7b} type=${2:-Q4_K_M} folder=${3:-/var/tmp}
context=${CONTEXT:-512} prompt=${PROMPT:-64} generate=${GENERATE:-128}

weft=${WEFT:-}
if [ -z "$weft" ]; then
  "$root/tools/run.sh" --version >/dev/null
  weft=$root/bazel-bin/cli/weft
fi
name=$folder/weft-streaming-$(basename "$shape" .json)
plan=$name-$type-$context.weft
if [ ! -e "$plan" ]; then
  model=$name.gguf
  "$weft" synth --shape "$shape" --type "$type" --seed 1 -o "$model"
  "$weft" compile "$model" --context "$context" -o "$plan" --quiet >&2
  rm -f "$model"
fi
limit=$(($(stat -c %s "$plan") / 3))
# What the planned peak does not know: the kernel's own, for this group.
budget=$((limit - limit / 20))

if [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/weft-streaming.$$ knob=memory.limit_in_bytes
else
  group=/sys/fs/cgroup/weft-streaming.$$ knob=memory.max
fi
mkdir "$group" && echo "$limit" >"$group/$knob" || {
  echo "benchmarks/streaming.sh: cannot limit memory in $group: run as root, with" \
    "the memory controller on" >&2
  exit 1
}
trap 'rmdir "$group"' EXIT

# In the group, with nothing of the plan in the page cache.
limited() {
  dd if="$plan" iflag=nocache count=0 2>/dev/null
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

measure() {
  limited "$weft" bench "$plan" --json --quiet --prompt "$prompt" \
    --generate "$generate" --repeat 3 "$@"
}

seen=$("$weft" inspect "$plan" --memory-budget "$budget" --json)
streamed=$(measure --memory-budget "$budget")
mapped=$(measure --force)
python3 - "$limit" "$seen" "$streamed" "$mapped" <<'PYTHON'
import json
import sys

limit = int(sys.argv[1])
seen, streamed, mapped = (json.loads(text) for text in sys.argv[2:])
plan = seen["cluster"]["streaming"]
disk = plan["disk_bytes_per_second"]
print(f"limit {limit / 1e9:.2f} GB, disk {disk / 1e9:.2f} GB/s, "
      f"{plan['experts_in_memory']} of {plan['experts']} experts in memory")
print(f"{'':24} {'prefill':>9} {'decode':>9} {'MB/token':>9} {'of the disk':>11}")


def row(name, result, read):
    decode = result["decode_tokens_per_second"]["median"]
    print(f"{name:24} {result['prefill_tokens_per_second']['median']:9.2f} "
          f"{decode:9.2f} " + (f"{read / 1e6:9.1f} {decode * read / disk:11.0%}"
                               if read else ""))


print(f"{'predicted':24} {'':9} {plan['tokens_per_second']:9.2f} "
      f"{plan['bytes_read_per_token'] / 1e6:9.1f} {1:11.0%}")
row("--memory-budget", streamed, streamed["experts"]["bytes_read_per_token"])
row("mapped", mapped, None)
print(f"found in memory: {streamed['experts']['found_share']:.0%}; "
      f"peak {streamed['peak_rss_bytes'] / 1e9:.2f} GB")
PYTHON
