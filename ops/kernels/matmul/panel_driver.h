// The loops around the panel kernels of one instruction set, for every type.
//
// Three ways to use the packed weight, each a kernel of its own in the table:
//   unpacked  unpacks two panels once into scratch (L2), then runs over all
//             rows in tiles, each over the whole depth with sums in registers.
//             Meanwhile each tile prefetches its share of the next panels, a
//             line now and then: a burst per tile would stall it.
//   packed    the same, but each tile unpacks the two panels in registers: for
//             some tiles that costs less than the way through memory.
//   single    one panel at a time, unpacked as it streams in: the only way
//             whose prefetch begins with the first panel itself.
//
// `Kernels` has
//   kTileRows       rows of a tile, one or more tiles of quantised rows
//   kSignedQuants   whether Tile wants unpacked quants as signed bytes
//   Session         what lives as long as a call
// and for a block type, with sums laid out as in panel_epilogue.h:
//   template <class Block> static void Tile(const TileCall&, int rows);
//   template <class Block> static void PackedTile(const TileCall&, int rows);
//   template <class Block> static void Panel(const uint8_t* panel,
//       int64_t depth, const uint8_t* x, int rows, float* sums);
#pragma once

#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/panel16.h"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/matmul/panel_unpack.h"
#include "ops/kernels/quantized_rows.h"

namespace weft {
namespace {

// What most kernels have of what is above.
struct SixRowKernels {
  static constexpr int kTileRows = kQuantizedRowsTile;
  static constexpr bool kSignedQuants = false;
  struct Session {};
};

// One tile against two panels.
struct TileCall {
  const uint8_t* packed[2];
  UnpackedPair unpacked;  // for Tile
  const uint8_t* x;       // the tile's first block
  int64_t blocks;         // of 32 columns
  float* sums;            // 32 of each kSumsStride
  const uint8_t* prefetch;
  int64_t prefetch_step;  // bytes per block
};

WEFT_INLINE const uint8_t* TileOf(const MatmulArgs& args, int64_t row) {
  return QuantizedTile(const_cast<void*>(args.x), args.depth, row);
}

// `unpack`: into scratch, once for all tiles. Otherwise each tile unpacks in
// registers.
template <class Block, class Kernels, bool unpack>
void PanelMatmulTiles(const MatmulArgs& args, int64_t begin, int64_t end,
                      uint8_t* scratch) {
  const int64_t panel_bytes = PanelBytes<Block>(args.depth);
  const int64_t blocks = args.depth / 32;
  [[maybe_unused]] const typename Kernels::Session session;
  const int together = PanelsTogether(args.epilogue) == 4 ? 4 : 2;
  for (int64_t p = begin; p < end; p += together) {
    const int panels =
        static_cast<int>(end - p < together ? end - p : together);
    const int pairs = (panels + 1) / 2;
    TileCall calls[2];
    for (int i = 0; i < pairs; ++i) {
      TileCall& call = calls[i];
      call.blocks = blocks;
      call.packed[0] = args.weight + (p + 2 * i) * panel_bytes;
      // A single last panel stands in for its neighbour.
      const bool single = 2 * i + 1 == panels;
      call.packed[1] = call.packed[0] + (single ? 0 : panel_bytes);
      if (unpack) {
        constexpr bool as_signed = Kernels::kSignedQuants;
        call.unpacked = UnpackPair<Block, as_signed>(
            call.packed, args.depth,
            scratch + i * UnpackedPairBytes<Block, as_signed>(args.depth));
      }
    }
    // The next panels also when they are of the next call: most often that is
    // this thread's too. Tiles of few rows take less time and less of them.
    const uint8_t* prefetch = args.weight + (p + panels) * panel_bytes;
    const float row_bytes = static_cast<float>(together * panel_bytes) /
                            static_cast<float>(args.rows * pairs * blocks);
    constexpr int most = Kernels::kTileRows;
    for (int64_t row = 0; row < args.rows; row += most) {
      const int64_t left = args.rows - row;
      const int rows = static_cast<int>(left < most ? left : most);
      const int64_t step = static_cast<int64_t>(row_bytes * rows) + 1;
      alignas(64) float sums[most * kSumsStride];
      for (int i = 0; i < pairs; ++i) {
        TileCall& call = calls[i];
        call.x = TileOf(args, row);
        call.sums = sums + 32 * i;
        call.prefetch = prefetch;
        call.prefetch_step = step;
        if constexpr (unpack) {
          Kernels::template Tile<Block>(call, rows);
        } else {
          Kernels::template PackedTile<Block>(call, rows);
        }
        prefetch += step * blocks;
      }
      FinishRows(args, p, panels, row, rows, sums);
    }
  }
}

template <class Block, class Kernels>
void PanelMatmulSingle(const MatmulArgs& args, int64_t begin, int64_t end) {
  const int64_t panel_bytes = PanelBytes<Block>(args.depth);
  const int together = PanelsTogether(args.epilogue);
  for (int64_t p = begin; p < end; p += together) {
    // Passes after the first find the panels in L1 or L2.
    for (int64_t row = 0; row < args.rows; row += kQuantizedRowsTile) {
      const int rows = QuantizedTileRows(row, args.rows);
      alignas(64) float sums[kQuantizedRowsTile * kSumsStride];
      for (int i = 0; i < together; ++i) {
        Kernels::template Panel<Block>(args.weight + (p + i) * panel_bytes,
                                       args.depth, TileOf(args, row), rows,
                                       sums + 16 * i);
      }
      FinishRows(args, p, together, row, rows, sums);
    }
  }
}

}  // namespace
}  // namespace weft
