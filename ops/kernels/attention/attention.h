// Attention over the paged KV cache, fused and as its three primitives.
//
// Row t attends to positions 0 .. positions[t] of its sequence, or those less
// than `window` from its own, or those of its own chunk:
//   score[p] = scale * sum over d of q[d] * k[p, d]
//   with a softcap: score[p] = softcap * tanh(score[p] / softcap)
//   with a temperature: q is multiplied by a number that grows with the row's
//   position, and rounded, first
//   with alibi: score[p] -= slope of the head * |p - own position|
//   with sinks: one more score of each head, in softmax's sum only
//   y = sum over p of softmax(score)[p] * v[p]
// Query head h reads KV head h / (heads / kv_heads). Values may be what keys
// begin with (multi-head latent attention: DeepSeek-AI 2024, arXiv:2405.04434):
// then each page of keys is transposed once for all rows that read it.
//
// The fused kernel keeps a running maximum and sum (online softmax: Milakov and
// Gimelshein 2018, arXiv:1805.02867; tiled as in FlashAttention, Dao et al.
// 2022, arXiv:2205.14135). A page of 64 positions is one step, pages in order.
// Within it each score is one chain of fused multiply-adds over d, and each
// output one chain over p, so a row's bits do not depend on which rows share a
// call, a block or a thread, nor on the instruction set (but for products of
// bfloat16, below). A row never multiplies a value that it may not see.
//
// Work is cut into items, one KV head, or some of the heads that read it, for
// one block of rows; a caller may split items [0, AttentionItems) over threads
// as it likes. Items of one head are neighbours. Plain structs: files compiled
// for one instruction set include this.
#pragma once

#include <stdint.h>

#include "ops/kernels/kernel.h"
#include "ops/kernels/kv_layout.h"

namespace weft {

struct AttentionArgs {
  const float* q;  // [rows, heads * key_dim]
  int64_t q_row_bytes;
  int64_t rows;
  int64_t heads;  // a multiple of kv_heads
  int64_t kv_heads;
  int64_t key_dim;    // <= kMaxHeadDim; kQ8_0 caches: a multiple of 32
  int64_t value_dim;  // likewise
  const KvState* keys;
  const KvState* values;
  const int32_t* positions;  // [rows], >= 0: the last that a row sees
  const int32_t* slots;      // [rows]: of its sequence
  // [rows], >= 0: where a row stands; null: there.
  const int32_t* own_positions = nullptr;
  float scale;
  float* y;  // [rows, heads * value_dim]; unused by scores
  int64_t y_row_bytes;
  // attention_scores writes, attention_values reads f32[rows, heads, columns];
  // columns > every position. Scores a row may not see are -infinity.
  float* scores;
  int64_t score_columns;
  int64_t window = 0;  // 0: all; attention_values goes by its weights alone
  float softcap = 0;   // 0: none
  // `values` is a state of keys: a value is the first value_dim numbers of a
  // key of key_dim.
  bool values_are_keys = false;
  // See AttentionAttributes; 0: none.
  double temperature = 0;
  int64_t temperature_period = 1;
  int64_t temperature_offset = 0;
  int64_t chunk = 0;             // 0: all
  double alibi = 0;              // see AttentionAttributes; 0: none
  const float* sinks = nullptr;  // fused: [heads]
};

// Rows of one block: up to 96 query rows share each key and value that is read.
static inline int64_t AttentionBlockRows(int64_t heads, int64_t kv_heads) {
  const int64_t group = heads / kv_heads;
  return group >= 96 ? 1 : 96 / group;
}

static inline int64_t AttentionBlocks(int64_t rows, int64_t heads,
                                      int64_t kv_heads) {
  const int64_t block = AttentionBlockRows(heads, kv_heads);
  return (rows + block - 1) / block;
}

// Items that the heads of one KV head are cut into, 8 heads each at least: few
// rows with few KV heads are work for several threads too.
static inline int64_t AttentionParts(int64_t rows, int64_t heads,
                                     int64_t kv_heads) {
  constexpr int64_t kEnoughItems = 8;
  const int64_t most = heads / kv_heads / 8;
  const int64_t items = AttentionBlocks(rows, heads, kv_heads) * kv_heads;
  if (most < 2 || items == 0) return 1;
  const int64_t wanted = (kEnoughItems + items - 1) / items;
  return wanted < most ? wanted : most;
}

static inline int64_t AttentionItems(int64_t rows, int64_t heads,
                                     int64_t kv_heads) {
  return AttentionBlocks(rows, heads, kv_heads) *
         AttentionParts(rows, heads, kv_heads) * kv_heads;
}

// Thread scratch of all three kernels, to be 64-byte aligned.
static inline int64_t AttentionScratchBytes(int64_t heads, int64_t kv_heads,
                                            int64_t key_dim,
                                            int64_t value_dim) {
  const int64_t rows = AttentionBlockRows(heads, kv_heads) * (heads / kv_heads);
  const int64_t padded = (value_dim + 15) / 16 * 16;
  // Outputs, one widened page of values, queries, sums, maxima, positions seen
  // and taken, and slopes.
  const int64_t floats =
      (rows + kPageTokens) * padded + rows * (key_dim + 16 + 4) + 16;
  return (floats * 4 + 63) / 64 * 64;
}

using AttentionFunction = void (*)(const AttentionArgs& args,
                                   int64_t item_begin, int64_t item_end,
                                   uint8_t* thread_scratch);

// Reads states of one type.
struct AttentionKernel {
  const char* op;
  KvType type;
  AttentionFunction run;
};

// The family on one instruction set.
struct AttentionKernels {
  KernelList<AttentionKernel> fused;
  KernelList<AttentionKernel> scores;
  KernelList<AttentionKernel> values;
};

extern const AttentionKernels kAttentionKernelsAvx2;
extern const AttentionKernels kAttentionKernelsAvx512;
extern const AttentionKernels kAttentionKernelsNeon;

// In products of bfloat16: queries and weights are rounded to it, so the bits
// are its own.
extern const AttentionKernels kAttentionKernelsAvx512Bf16;

}  // namespace weft
