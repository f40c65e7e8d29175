#!/bin/sh
# One model by two ranks whose network has a given bandwidth, beside one rank
# alone and two that share memory.
#   benchmarks/ranks.sh WEFT MODEL [GBIT...]      default: 10 1
# Two network namespaces are joined by a pair of virtual interfaces, shaped by
# tc's token bucket, and mpirun starts a rank in each. Needs root, iproute2 and
# Open MPI. Every process has one thread on a processor of its own; the text of
# each run must be the same.
set -eu
weft=$1
model=$2
shift 2
[ $# -gt 0 ] || set -- 10 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

folder=$(mktemp -d)
cleanup() {
  ip netns del weft-a 2>/dev/null || true
  ip netns del weft-b 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
cleanup
mkdir "$folder"
ip netns add weft-a
ip netns add weft-b
ip link add weft-a netns weft-a type veth peer name weft-b netns weft-b
for side in a b; do
  [ $side = a ] && number=1 || number=2
  ip netns exec weft-$side ip addr add 10.77.0.$number/24 dev weft-$side
  ip netns exec weft-$side ip link set weft-$side up
  ip netns exec weft-$side ip link set lo up
done
# What mpirun asks to start something on the other machine.
cat >"$folder/agent" <<'EOF'
#!/bin/sh
shift
exec ip netns exec weft-b sh -c "$*"
EOF
chmod +x "$folder/agent"

over_network() {
  ip netns exec weft-a mpirun -n 2 --host 10.77.0.1:1,10.77.0.2:1 \
    --mca plm_rsh_agent "$folder/agent" --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include \
    10.77.0.0/24 --bind-to none "$@"
}
bench() {
  name=$1
  shift
  "$@" "$weft" bench "$model" --threads 1 --quiet --prompt 256 --generate 32 --repeat 3 \
    --json >"$folder/bench"
  "$@" "$weft" run "$model" --threads 1 --quiet -p 'a b c' -n 16 \
    --temperature 0 >"$folder/text"
  printf '%-28s %s  text %s\n' "$name" \
    "$(python3 -c 'import json,sys; b=json.load(open(sys.argv[1])); print("prompt %.1f/s  decode %.2f/s" % (b["prefill_tokens_per_second"]["median"], b["decode_tokens_per_second"]["median"]))' "$folder/bench")" \
    "$(md5sum <"$folder/text" | cut -c1-8)"
}

bench "one rank" env
bench "two, shared memory" mpirun -n 2 --oversubscribe --bind-to none
for gbit; do
  for side in a b; do
    ip netns exec weft-$side tc qdisc replace dev weft-$side root tbf \
      rate "${gbit}gbit" burst 256kb latency 50ms
  done
  bench "two, $gbit Gbit/s" over_network
done
"$weft" inspect "$model" --shards 2 --threads 1 --quiet | sed -n '/^by ranks/,$p'
