// What Qwen3-Next and Qwen3.5 share: blocks of a gated delta net (Yang et al.
// 2024, arXiv:2412.06464) and, every so many, attention with a gate of its own.
#pragma once

#include <functional>

#include "loaders/architectures/architecture.h"

namespace weft {

// The rows that a block's mixer is made of, as a family's tensors have them.
struct DeltaNetInputs {
  ValueId qkv = kNone;    // f32[T, all queries, all keys, all values]
  ValueId gate = kNone;   // f32[T, values]
  ValueId beta = kNone;   // f32[T, heads], before the sigmoid
  ValueId alpha = kNone;  // f32[T, heads]
};

struct DeltaNetFamily {
  std::function<DeltaNetInputs(int64_t block, ValueId x)> inputs;
  std::function<ValueId(int64_t block, ValueId x)> feed_forward;
  HeadOrder key_heads;
};

// The whole model. Blocks for the prediction of further tokens are left out.
void BuildDeltaNetModel(ModelBuilder& m, const DeltaNetFamily& family);
// The first of these, which has attention.
void BuildDeltaNetNextTokenBlock(ModelBuilder& m, const DeltaNetFamily& family);

ModelTraits DeltaNetTraits();

// The feed-forward network of those with experts: the likeliest, their weights
// made to sum to 1, and one that all tokens go through, with a gate of its own.
ValueId ExpertsAndGatedOne(ModelBuilder& m, int64_t block, ValueId x);
ModelTraits WithExperts(ModelTraits traits);

}  // namespace weft
