// What a kernel sees when it runs: plain structs only, since files compiled for
// one instruction set include this.
//
// Kernels check nothing: the plan already did (graph rules, sizes, alignment,
// offsets, the kernel's own refusals).
#pragma once

#include <stdint.h>

namespace weft {

// Positions per page of the KV cache.
constexpr int kPageTokens = 64;

// The pages of one state (one layer's keys, or its values), and where they are.
//
// Position p of sequence slot s lies in page
//   page_table[s * pages_per_sequence + p / kPageTokens]
// at place p % kPageTokens. One page holds, for every KV head in order:
//   keys    f32/f16: [head_dim][kPageTokens], transposed, so that 64 scores
//           are computed lane by lane
//           bf16: [head_dim / 2][kPageTokens][2], pairs of dimensions side by
//           side, as dot products of bfloat16 take them; of an odd head_dim
//           the last pair ends in 0
//           q8_0: int8 [head_dim][kPageTokens], then f16 scales
//           [head_dim / 32][kPageTokens]
//   values  f32/f16: [kPageTokens][head_dim]
//           bf16: [kPageTokens / 2][head_dim][2], pairs of positions
//           q8_0: int8 [kPageTokens][head_dim], then f16 scales
//           [kPageTokens][head_dim / 32]
struct KvState {
  uint8_t* pages;
  int64_t page_bytes;
  const int32_t* page_table;
  int64_t pages_per_sequence;
};

// One input or output. Rows are `row_bytes` apart (a slice of a wider matrix
// keeps its parent's distance). Weights have the layout that their kernel asked
// for; quantised rows the one of quantized_rows.h (row_bytes is 0 for both).
struct Operand {
  void* data;
  int64_t rows;
  int64_t columns;
  int64_t row_bytes;
  const KvState* state;  // for state operands, else null
};

// One node in one step. Rows are the step's own, not the bucket's bound.
struct KernelCall {
  const Operand* inputs;
  const Operand* outputs;
  // Shared by all threads, of the size that the kernel asked for; 64-byte
  // aligned.
  uint8_t* scratch;
  // This thread's own, likewise.
  uint8_t* thread_scratch;
  // For kernels that take experts apart (KernelEntry::takes_experts_apart):
  // where the matrix of each expert lies; null for those that this call leaves
  // out, whose results it does not write. A null table: all are in the weight.
  const uint8_t* const* experts = nullptr;
};

// Kernels of one instruction set, one line each: an array of the file that is
// compiled for it.
template <class Line>
struct KernelList {
  const Line* lines;
  int count;

  const Line* begin() const { return lines; }
  const Line* end() const { return lines + count; }
};

template <class Line, int kCount>
static constexpr KernelList<Line> ListOf(const Line (&lines)[kCount]) {
  return {lines, kCount};
}

}  // namespace weft
