// Qwen3-Next (Qwen 2025): the gated delta net of Qwen3.5, with experts. The
// heads of values that have one head of keys stand together.
#include "loaders/architectures/architectures.h"
#include "loaders/architectures/blocks.h"
#include "loaders/architectures/gated_delta_net.h"
#include "loaders/architectures/recurrent.h"

namespace weft {
namespace {

// Head of keys by head of keys: its query, its key, and values and gates of the
// heads that have it. As files had it before attn_qkv and attn_gate.
void ReadOldProjection(ModelBuilder& m, const std::string& name, ValueId x,
                       const SsmSizes& s, DeltaNetInputs* in) {
  const int64_t keys = s.state, values = s.inner / s.groups;
  const ValueId weight =
      m.Matrix(name, 2 * s.groups * (keys + values), m.config.embedding_length);
  if (!m.ok()) return;
  const auto part = [&](int64_t begin, int64_t size) {
    return m.SliceRows(weight, s.groups, begin, size);
  };
  const ValueId qkv =
      m.ConcatRows({part(0, keys), part(keys, keys), part(2 * keys, values)});
  m.Name(name + "_qkv");
  in->qkv = m.Matmul(x, qkv);
  m.Name(name + "_gate");
  in->gate = m.Matmul(x, part(2 * keys + values, values));
}

DeltaNetInputs Inputs(ModelBuilder& m, int64_t block, ValueId x) {
  const std::string blk = BlockPrefix(block);
  const SsmSizes s = SsmSizesOf(m);
  const int64_t d = m.config.embedding_length;
  DeltaNetInputs in;
  if (m.HasTensor(blk + "ssm_in.weight")) {
    ReadOldProjection(m, blk + "ssm_in", x, s, &in);
  } else {
    in.qkv = m.Linear(blk + "attn_qkv", x, 2 * s.groups * s.state + s.inner, d);
    in.gate = m.Linear(blk + "attn_gate", x, s.inner, d);
  }
  // Of each head of keys first its betas, then its alphas.
  const int64_t share = s.heads / s.groups;
  const ValueId weight = m.Matrix(blk + "ssm_ba", 2 * s.heads, d);
  if (!m.ok()) return in;
  m.Name(blk + "ssm_beta");
  in.beta = m.Matmul(x, m.SliceRows(weight, s.groups, 0, share));
  m.Name(blk + "ssm_alpha");
  in.alpha = m.Matmul(x, m.SliceRows(weight, s.groups, share, share));
  return in;
}

DeltaNetFamily Family(ModelBuilder& m) {
  DeltaNetFamily family;
  family.key_heads = HeadOrder::kGrouped;
  family.inputs = [&m](int64_t block, ValueId x) {
    return Inputs(m, block, x);
  };
  family.feed_forward = [&m](int64_t block, ValueId x) {
    return ExpertsAndGatedOne(m, block, x);
  };
  return family;
}

void Build(ModelBuilder& m) { BuildDeltaNetModel(m, Family(m)); }

void BuildNextTokenBlock(ModelBuilder& m) {
  BuildDeltaNetNextTokenBlock(m, Family(m));
}

}  // namespace

const Architecture kQwen3Next = {"qwen3next", WithExperts(DeltaNetTraits()),
                                 Build, BuildNextTokenBlock};

}  // namespace weft
