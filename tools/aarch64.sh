#!/bin/sh
# Compiles for 64-bit ARM and tries the result under emulation on this machine.
#   tools/aarch64.sh             the tests of operations and kernels, then logits
#   tools/aarch64.sh TARGET...   these tests instead
#   tools/aarch64.sh --logits    only logits: of the models in models/ and
#                                tests/data/golden, on every instruction set,
#                                against the bits of a build for this machine
# Installs what is missing and fetches libraries for arm64 (third_party/aarch64.bzl).
# Takes a while: an emulated program is some thirty times slower. The program for
# ARM is left in bazel-out/aarch64-opt/bin/cli/weft.
set -eu
. "$(dirname "$0")/bazel.sh"
"$root/tools/install.sh" --aarch64

same_logits() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  weft_build //cli:weft
  cp -L "$root/bazel-bin/cli/weft" "$work/weft"
  weft_build --config=aarch64 //cli:weft
  arm=$root/bazel-out/aarch64-opt/bin/cli/weft
  libraries=$root/bazel-$(basename "$root")/external/aarch64/arm64/lib
  for type in F16 BF16; do
    "$work/weft" quantize "$root/tests/data/golden/arch/llama-gqa.gguf" \
      "$work/llama-gqa-$type.gguf" $type --quiet >/dev/null
  done
  differ=0
  for model in "$root"/models/*.gguf "$root"/tests/data/golden/*/*.gguf \
    "$work"/*.gguf; do
    compare "$model" ""
    compare "$model" "--disable-pass quantize-activations --kv-type f32"
  done
  compare "$root/models/austen-Q8_0.gguf" "--kv-type q8_0"
  compare "$root/models/austen-Q8_0.gguf" "--kv-type bf16"
  return $differ
}

# compare MODEL FLAGS: in one step of nine tokens, and one token at a time; here
# without products of bfloat16, which have their own bits.
compare() {
  for chunk in 512 1; do
    command="eval $1 --tokens 1,20,7,33,12,5,28,9,16 --chunk $chunk $2 --quiet"
    "$work/weft" $command --isa avx512vnni --logits "$work/here" >/dev/null
    for isa in neon neondot neoni8mm; do
      qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu \
        -E LD_LIBRARY_PATH="$libraries" "$arm" $command \
        --isa $isa --logits "$work/there" >/dev/null
      result="the same bits"
      cmp -s "$work/here" "$work/there" || { result=DIFFERENT && differ=1; }
      echo "$(basename "$1") $2 --chunk $chunk on $isa: $result"
    done
  done
}

case ${1:-} in
  --logits) same_logits ;;
  "") "$root/tools/test.sh" --config=aarch64 //tests/ops/... && same_logits ;;
  *) exec "$root/tools/test.sh" --config=aarch64 "$@" ;;
esac
