// The loops around the panel kernels of one instruction set, for every type.
//
// Two kernels share the packed weight:
//   prefill  unpacks two panels once into scratch (L2), then runs over all rows
//            in tiles of 6, each over the whole depth with sums in registers.
//            Meanwhile each tile prefetches its share of the next panels, a
//            line now and then: a burst per tile would stall it.
//   few      each panel through registers as it streams in, for a few rows at a
//            time (kPanelRowsOfX: 6, or up to 8 that begin a tile).
//
// `Kernels` has, for a block type, with sums laid out as in panel_epilogue.h:
//   template <class Block> static void Tile(const TileCall&, int rows);
//   template <class Block> static void Panel(const uint8_t* panel,
//       int64_t depth, const uint8_t* x, const uint8_t* x_next_tile, int rows,
//       float* sums);
#pragma once

#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/panel16.h"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/matmul/panel_unpack.h"
#include "ops/kernels/quantized_rows.h"

namespace weft {
namespace {

// One tile of quantised rows against two unpacked panels.
struct TileCall {
  UnpackedPair weights;
  const uint8_t* x;  // the tile's first block
  int64_t blocks;    // of 32 columns
  float* sums;       // 32 of each kSumsStride
  const uint8_t* prefetch;
  int64_t prefetch_step;  // bytes per block
};

WEFT_INLINE const uint8_t* TileOf(const MatmulArgs& args, int64_t row) {
  return QuantizedTile(const_cast<void*>(args.x), args.depth, row);
}

template <class Block, class Kernels>
void PanelMatmul(const MatmulArgs& args, int64_t begin, int64_t end,
                 uint8_t* scratch) {
  const int64_t panel_bytes = PanelBytes<Block>(args.depth);
  const int64_t blocks = args.depth / 32;
  const int64_t tiles =
      (args.rows + kQuantizedRowsTile - 1) / kQuantizedRowsTile;
  const int together = PanelsTogether(args.epilogue) == 4 ? 4 : 2;
  for (int64_t p = begin; p < end; p += together) {
    const int panels =
        static_cast<int>(end - p < together ? end - p : together);
    const int pairs = (panels + 1) / 2;
    UnpackedPair pair[2];
    for (int i = 0; i < pairs; ++i) {
      const uint8_t* first = args.weight + (p + 2 * i) * panel_bytes;
      // A single last panel stands in for its neighbour.
      const bool single = 2 * i + 1 == panels;
      const uint8_t* const both[2] = {first,
                                      first + (single ? 0 : panel_bytes)};
      pair[i] = UnpackPair<Block>(
          both, args.depth, scratch + i * UnpackedPairBytes<Block>(args.depth));
    }
    const int64_t next = p + panels;
    const int64_t next_panels = end - next < together ? end - next : together;
    const float step = static_cast<float>(next_panels * panel_bytes) /
                       static_cast<float>(tiles * pairs * blocks);
    int64_t steps = 0;
    for (int64_t row = 0; row < args.rows; row += kQuantizedRowsTile) {
      const int rows = QuantizedTileRows(row, args.rows);
      alignas(64) float sums[kQuantizedRowsTile * kSumsStride];
      for (int i = 0; i < pairs; ++i, steps += blocks) {
        TileCall call;
        call.weights = pair[i];
        call.x = TileOf(args, row);
        call.blocks = blocks;
        call.sums = sums + 32 * i;
        call.prefetch = args.weight + next * panel_bytes +
                        static_cast<int64_t>(step * static_cast<float>(steps));
        call.prefetch_step =
            static_cast<int64_t>(step) + (next_panels > 0 ? 1 : 0);
        Kernels::template Tile<Block>(call, rows);
      }
      FinishRows(args, p, panels, row, rows, sums);
    }
  }
}

// Rows of the pass that starts at `row`: a tile, or what is left when a kernel
// takes that at once.
template <class Kernels>
WEFT_INLINE int PassRows(int64_t row, int64_t rows) {
  const int64_t left = rows - row;
  return static_cast<int>(left <= Kernels::kPanelRowsOfX ? left
                                                         : kQuantizedRowsTile);
}

template <class Block, class Kernels>
void PanelMatmulFew(const MatmulArgs& args, int64_t begin, int64_t end) {
  const int64_t panel_bytes = PanelBytes<Block>(args.depth);
  const int together = PanelsTogether(args.epilogue);
  for (int64_t p = begin; p < end; p += together) {
    // Passes after the first find the panels in L1 or L2.
    for (int64_t row = 0; row < args.rows;) {
      const int rows = PassRows<Kernels>(row, args.rows);
      alignas(64) float sums[Kernels::kPanelRowsOfX * kSumsStride];
      for (int i = 0; i < together; ++i) {
        Kernels::template Panel<Block>(
            args.weight + (p + i) * panel_bytes, args.depth, TileOf(args, row),
            TileOf(args, row + kQuantizedRowsTile), rows, sums + 16 * i);
      }
      FinishRows(args, p, together, row, rows, sums);
      row += rows;
    }
  }
}

}  // namespace
}  // namespace weft
