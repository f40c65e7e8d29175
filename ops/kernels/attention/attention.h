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
// output one chain over p. Pieces of 16 pages begin anew and are put together
// in order (as in Flash-Decoding: Dao et al. 2023), whether or not they are
// work for several threads. So a row's bits do not depend on which rows share a
// call, a block or a thread, nor on the instruction set (but for products of
// bfloat16, below). A row never multiplies a value that it may not see.
//
// Work is cut into items, one KV head, or some of the heads that read it, for
// one block of rows; a caller may split items [0, AttentionItems) over threads
// as it likes. Items of one head are neighbours. Few rows that look far back
// are cut into pieces, too: each item is one piece then, whose result goes to
// args.partial, and a second phase puts the pieces of rows [0, rows) together.
// Plain structs: files compiled for one instruction set include this.
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
  // Fused: pieces that are items, from first_piece on; 0: none are.
  int64_t first_piece = 0;
  int64_t pieces = 0;
  float* partial = nullptr;  // [rows, heads, pieces, AttentionPartialFloats]
};

// What is put together in order: see above.
constexpr int kPiecePages = 16;
constexpr int kPieceTokens = kPiecePages * kPageTokens;

static inline int64_t AttentionPieces(int64_t context) {
  return (context + kPieceTokens - 1) / kPieceTokens;
}

// Of one row and head after one piece: its outputs, 16 sums, its maximum.
static inline int64_t AttentionPartialFloats(int64_t value_dim) {
  return (value_dim + 15) / 16 * 16 + 32;
}

// Where a row stands.
static inline int64_t OwnPosition(const AttentionArgs& args, int64_t token) {
  return args.own_positions != nullptr ? args.own_positions[token]
                                       : args.positions[token];
}

// The last position that a row sees.
static inline int64_t LastSeen(const AttentionArgs& args, int64_t token) {
  const int64_t last = args.positions[token];
  if (args.own_positions == nullptr || args.window == 0) return last;
  const int64_t ahead = args.own_positions[token] + args.window - 1;
  return ahead < last ? ahead : last;
}

// The first position that a row at `position` sees.
static inline int64_t WindowBegin(const AttentionArgs& args, int64_t position) {
  int64_t first = args.window > 0 && position >= args.window
                      ? position + 1 - args.window
                      : 0;
  if (args.chunk > 0) {
    const int64_t chunk = position / args.chunk * args.chunk;
    if (chunk > first) first = chunk;
  }
  return first;
}

// The first piece that a row sees, of one at least; `last` is LastSeen.
static inline int64_t FirstPiece(const AttentionArgs& args, int64_t own,
                                 int64_t last) {
  const int64_t first = WindowBegin(args, own);
  return (first < last ? first : last) / kPieceTokens;
}

struct AttentionRange {
  int64_t begin, end;
};

// Pieces that some row sees.
static inline AttentionRange AttentionPiecesSeen(const AttentionArgs& args) {
  AttentionRange seen = {0, 0};
  for (int64_t t = 0; t < args.rows; ++t) {
    const int64_t last = LastSeen(args, t);
    const int64_t begin = FirstPiece(args, OwnPosition(args, t), last);
    const int64_t end = last / kPieceTokens + 1;
    if (t == 0 || begin < seen.begin) seen.begin = begin;
    if (t == 0 || end > seen.end) seen.end = end;
  }
  return seen;
}

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

// Thread scratch of all three kernels, to be 64-byte aligned. Positions are
// below `context`.
static inline int64_t AttentionScratchBytes(int64_t heads, int64_t kv_heads,
                                            int64_t key_dim, int64_t value_dim,
                                            int64_t context) {
  const int64_t rows = AttentionBlockRows(heads, kv_heads) * (heads / kv_heads);
  const int64_t padded = (value_dim + 15) / 16 * 16;
  // Outputs, one widened page of values, queries, sums, maxima, positions seen
  // and taken, and slopes.
  int64_t floats =
      (rows + kPageTokens) * padded + rows * (key_dim + 16 + 4) + 16;
  // Pieces put together so far.
  if (context > kPieceTokens)
    floats += rows * AttentionPartialFloats(value_dim);
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
  // Fused: puts the pieces of rows [begin, end) together.
  AttentionFunction combine = nullptr;
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
