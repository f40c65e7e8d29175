// Matmuls of bfloat16 operands with sums in f32, as a file of one instruction
// set defines them. Weights lie as bf16_layout.h says.
//
// Order of summation, for every element whatever the kernel, number of rows or
// cut ("bf16 pairs"):
//   for each block of Bf16SumBlock(depth) columns, in order:
//     chain = 0; for each pair of the block: chain = vdpbf16ps(chain, x, w)
//     sum = chain of the first block, then sum = sum + chain
// then + bias and the epilogue (matmul.h). It is what oneDNN's matmul was
// measured to do (onednn_tile.h checks it), so that own kernels and oneDNN
// serve one weight. vdpbf16ps flushes subnormals and rounds to nearest,
// whatever the float mode.
#pragma once

#include "ops/kernels/matmul/matmul.h"

namespace weft {

constexpr int kBf16GroupRows = 64;

static inline int64_t Bf16PaddedDepth(int64_t depth) {
  return (depth + 31) / 32 * 32;
}

// Bytes of 64 packed rows.
static inline int64_t Bf16GroupBytes(int64_t depth) {
  return Bf16PaddedDepth(depth) * kBf16GroupRows * 2;
}

// Of the padded depth.
static inline int64_t Bf16SumBlock(int64_t padded_depth) {
  return padded_depth <= 1024 ? 512 : 1024;
}

struct Bf16Kernels {
  // MatmulArgs: x is rows of Bf16PaddedDepth(depth) bfloat16 without gaps, as
  // round_row makes them. `panel_begin` is a multiple of 4. All epilogues.
  MatmulFunction multiply;
  // The same for one group of up to four panels and some rows of x.
  PanelGroupFunction group;
  // Its last step, for sums that were computed elsewhere.
  FinishFunction finish;
  // A row of x, rounded to nearest even, filled with zeros to the padded depth.
  void (*round_row)(const float* x, int64_t depth, uint16_t* out);
};

extern const Bf16Kernels kBf16KernelsAvx512Bf16;

}  // namespace weft
