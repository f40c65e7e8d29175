// The op definitions, one family per file. Operands and attributes (those in
// brackets may be absent):
//
// Primitives
//   embed(ids i32[T], table [V,D])                     f32[T,D]
//   rms_norm(x, weight) eps [heads]                    x / rms(x) * weight
//   layer_norm(x, weight, [bias]) eps [heads]          the same of x - mean(x)
//       weight f32[D]; with heads, each head of D columns by itself, and weight
//       for one of them or for all
//   matmul(x [M,K], weight [N,K])                      f32[M,N] = x weight^T
//   add(a, b), mul(a, b)                               b like a, or f32[N]:
//   each
//                                                      row
//   scale(x) factor, softcap(x) cap                    x * factor,
//                                                      cap * tanh(x / cap)
//   silu(x), gelu(x) approximation
//   rope(x [M,H*D], positions i32[M], [factors f32[rope_dims/2]])
//       head_dim rope_dims base scale style [magnitude] [ramp_begin ramp_end]
//                                                      Su et al. 2021
//   kv_write(state, x f32[T,H*D], positions, sequence)
//                                                      a new version of the
//                                                      state
//   attention_scores(q f32[T,H*D], keys, positions, sequence)
//       heads scale [window] [softcap]                 f32[T,H,S], -inf where
//                                                      unseen
//   softmax(x)                                         over the last dimension
//   attention_values(p f32[T,H,S], values, positions, sequence)
//                                                      f32[T,H*D]
//   sigmoid(x)                                         1 / (1 + e^-x)
//   take_rows(x f32[T,D], rows i32[R])                 f32[R,D]
//   slice(x f32[M,N]) begin size                       a view of columns
//   top_k, expert_matmul, weighted_sum                 see experts.h
//
// Made by passes
//   quantize_rows(x f32[M,K])                          q8r[M,K]
//   rms_norm_quantize(x, weight) eps                   q8r[M,K]
//   layer_norm_quantize(x, weight, [bias]) eps         q8r[M,K]
//   fused_matmul(x, weight, norm?, ...)                see fused_matmul.h
//   fused_expert_matmul(x, weight, ids) experts epilogue
//                                                      see experts.h
//   silu_gate(a, b), gelu_gate(a, b)                   activation(a) * b
//   attention(q, keys, values, positions, sequence) as attention_scores
//   rope_kv_write(state, x, positions, sequence, [factors]) as rope
//                                                      rope, then kv_write
//   concat_rows(w, ...)                                one below the other
//   interleave_rows(gate, up)                          16 rows of each in turn
//   interleave_rows(both)                              of its two halves
//   pack_weight(w) layout                              the same rows, laid out
//                                                      anew
#pragma once

#include "ops/op.h"

namespace weft {

extern const OpDef kEmbedOp;
extern const OpDef kRmsNormOp;
extern const OpDef kLayerNormOp;
extern const OpDef kMatmulOp;
extern const OpDef kAddOp;
extern const OpDef kMulOp;
extern const OpDef kScaleOp;
extern const OpDef kSoftcapOp;
extern const OpDef kSiluOp;
extern const OpDef kGeluOp;
extern const OpDef kRopeOp;
extern const OpDef kKvWriteOp;
extern const OpDef kAttentionScoresOp;
extern const OpDef kSoftmaxOp;
extern const OpDef kAttentionValuesOp;
extern const OpDef kTakeRowsOp;
extern const OpDef kSliceOp;
extern const OpDef kSigmoidOp;
extern const OpDef kTopKOp;
extern const OpDef kExpertMatmulOp;
extern const OpDef kWeightedSumOp;

extern const OpDef kQuantizeRowsOp;
extern const OpDef kRmsNormQuantizeOp;
extern const OpDef kLayerNormQuantizeOp;
extern const OpDef kFusedMatmulOp;
extern const OpDef kFusedExpertMatmulOp;
extern const OpDef kSiluGateOp;
extern const OpDef kGeluGateOp;
extern const OpDef kAttentionOp;
extern const OpDef kRopeKvWriteOp;
extern const OpDef kConcatRowsOp;
extern const OpDef kInterleaveRowsOp;
extern const OpDef kPackWeightOp;

}  // namespace weft
