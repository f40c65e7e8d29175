// The kernels that panel_driver.h wants, made of one loop over unpacked bytes.
//
// For processors whose registers do not hold a panel's 16 lanes at once: both
// kernels read bytes and scales from memory, Panel from a buffer in L1 that it
// unpacks one super-block at a time into.
//
// `Rows` has, for a ProductKind:
//   template <class Kind> static void Add(const uint8_t* quants,
//       const float* scales, const uint8_t* x, int rows, int64_t blocks,
//       float* sums);
// which adds to sums[rows][kSumsStride] (16 of each) the products of one panel
// with `rows` (1 to 6) rows, a whole tile of quantised rows. quants:
// [blocks][512]; scales as in UnpackedPair (32 floats apart per scale, those of
// this panel first); x: the tile's first block.
#pragma once

#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/product_kind.h"
#include "ops/kernels/matmul/quantized_isa.h"

namespace weft {
namespace {

WEFT_INLINE void ClearSums(float* sums, int rows) {
  for (int m = 0; m < rows; ++m) Store(sums + m * kSumsStride, F32x16{});
}

template <class Rows>
struct BufferedKernels : SixRowKernels {
  template <class Block>
  static void Tile(const TileCall& call, int rows) {
    // No even spreading here: the tile is arithmetic-bound by far.
    for (int64_t o = 0; o < call.blocks * call.prefetch_step; o += 64) {
      __builtin_prefetch(call.prefetch + o, 0, 2);
    }
    for (int v = 0; v < 2; ++v) {
      ClearSums(call.sums + 16 * v, rows);
      Rows::template Add<ProductKindOf<Block>>(
          call.unpacked.quants[v], call.unpacked.scales + 16 * v, call.x, rows,
          call.blocks, call.sums + 16 * v);
    }
  }

  template <class Block>
  static void Panel(const uint8_t* panel, int64_t depth, const uint8_t* x,
                    int rows, float* sums) {
    using Layout = BlockFormat<Block>;
    constexpr int scale_floats = UnpackedScaleFloats<Block>();
    alignas(64)
        uint8_t bytes[Layout::kQuantsFirst ? 64 : 512 * Layout::kBlocks];
    alignas(64) float scales[scale_floats * Layout::kBlocks];
    ClearSums(sums, rows);
    for (int64_t s = 0; s < depth / Layout::kColumns; ++s) {
      const uint8_t* quants = panel + PanelQuants<Block>(s * Layout::kBlocks);
      for (int o = 0; o < Layout::kSuperBlockBytes; o += 64) {
        __builtin_prefetch(quants + 4096 + o);
      }
      UnpackSuperBlock<Block>(quants, panel + PanelMeta<Block>(s, depth), bytes,
                              scales);
      Rows::template Add<ProductKindOf<Block>>(
          Layout::kQuantsFirst ? quants : bytes, scales, x, rows,
          Layout::kBlocks, sums);
      x += Layout::kBlocks * rows * kQuantizedRowsBlockBytes;
    }
  }
};

}  // namespace
}  // namespace weft
