// Parts that decoder models have in common, each as a textbook would write it.
//
// Tensors have the names of the GGUF convention ("blk.0.attn_q", ...), nodes
// are named after them. A family's file puts these together and adds what it
// has alone. Values must not be used after a failure (ModelBuilder::ok).
#pragma once

#include <string>

#include "loaders/architectures/architecture.h"

namespace weft {

// "blk.<block>.": the prefix of a block's tensors.
std::string BlockPrefix(int64_t block);

// `name`.weight, and for LayerNorm `name`.bias, over whole rows of x, which
// have embedding_length columns.
ValueId RmsNorm(ModelBuilder& m, const std::string& name, ValueId x);
// Of rows of so many columns.
ValueId RmsNorm(ModelBuilder& m, const std::string& name, ValueId x,
                int64_t columns);
ValueId LayerNorm(ModelBuilder& m, const std::string& name, ValueId x,
                  Bias bias = Bias::kRequired);

// Queries, keys and values: f32[T, heads * key_length] and so on.
struct Heads {
  ValueId q = kNone, k = kNone, v = kNone;
  ValueId sinks = kNone;  // of softmax, one for each head of q; kNone: none
};

// By attn_q, attn_k and attn_v, with biases as `bias` says; or by one product,
// attn_qkv: q, k and v are slices of its rows. Converters join or split them as
// they like, so either takes the other form where the file has that.
Heads SeparateHeads(ModelBuilder& m, int64_t block, ValueId x,
                    Bias bias = Bias::kOptional);
Heads JoinedHeads(ModelBuilder& m, int64_t block, ValueId x,
                  Bias bias = Bias::kOptional);

// RMSNorm of every head by itself, by attn_q_norm and attn_k_norm, one weight
// for all heads.
Heads NormHeads(ModelBuilder& m, int64_t block, Heads heads);
// The same of one of the two, by `name`.weight.
ValueId NormByHead(ModelBuilder& m, const std::string& name, ValueId x,
                   int64_t heads, int64_t length);

// RMSNorm of all queries and of all keys, by the same tensors with a weight for
// each element.
Heads NormRows(ModelBuilder& m, int64_t block, Heads heads);

// Queries and keys turned by their positions.
Heads RotateHeads(ModelBuilder& m, int64_t block, Heads heads,
                  const RopeOptions& rope);

// The factors of longrope for the context that the plan is made for:
// rope_factors_long.weight beyond the original context, else
// rope_factors_short.weight; kNone where the file has neither.
ValueId LongRopeFactors(ModelBuilder& m);

// Attention to this and earlier positions through the KV cache, which keeps k
// and v (encoders: to all positions of the text); then attn_output.
// options.heads is filled in here; options.scale is 1 / sqrt(key_length) where
// DefaultAttention made it.
AttentionOptions DefaultAttention(const ModelConfig& config);
ValueId CachedAttention(ModelBuilder& m, int64_t block, const Heads& heads,
                        const AttentionOptions& options,
                        Bias bias = Bias::kOptional);

// Its two halves, for blocks that read what another one has written.
struct Cache {
  ValueId keys, values;
};
Cache WriteCache(ModelBuilder& m, int64_t block, const Heads& heads);
ValueId Attend(ModelBuilder& m, int64_t block, ValueId q, const Cache& cache,
               const AttentionOptions& options, Bias bias = Bias::kOptional,
               ValueId sinks = kNone);
// Attend without attn_output.
ValueId AttendHeads(ModelBuilder& m, int64_t block, ValueId q,
                    const Cache& cache, const AttentionOptions& options,
                    ValueId sinks = kNone);

// kClamped: clamped_gate with the numbers of gpt-oss.
enum class Activation { kSilu, kGeluTanh, kClamped };

// activation(gate) * up; nodes have the builder's name.
ValueId Gated(ModelBuilder& m, ValueId gate, ValueId up, Activation activation);

// ffn_down(activation(ffn_gate x) * ffn_up x).
ValueId GatedFeedForward(ModelBuilder& m, int64_t block, ValueId x,
                         Activation activation);
// The same with SiLU by one product, ffn_up, whose first half is the gate.
ValueId JoinedFeedForward(ModelBuilder& m, int64_t block, ValueId x);

// The embedding of the tokens.
ValueId EmbedTokens(ModelBuilder& m);

// x + y, named `name`.
ValueId Residual(ModelBuilder& m, const std::string& name, ValueId y,
                 ValueId x);

// The rows whose logits are wanted.
ValueId OutputRows(ModelBuilder& m, ValueId x);
// The same through the last norm, `norm`, after which next-token blocks read
// what the model makes of a token: where it has one to feed, all rows pass
// through the norm and are given.
ValueId NormedOutputRows(ModelBuilder& m, const std::string& norm, ValueId x);
// Logits of normalised rows: by output.weight, or where the file has none by
// the embedding, in families of which any published model has it so.
enum class Tied { kMaybe, kNever };
ValueId Logits(ModelBuilder& m, ValueId x, Tied tied = Tied::kMaybe);

}  // namespace weft
