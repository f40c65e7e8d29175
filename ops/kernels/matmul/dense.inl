// Dense matmuls, written once; each matmul_dense_<isa>.cc includes this and
// defines its table. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/matmul/dense_isa.h"
#include "ops/kernels/matmul/dense_tile.inl"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/native.h"
#include "ops/kernels/vector16.h"

namespace weft {
namespace {

// Few or many rows: their tile, and panels that go over all rows before the
// next.
struct Few {
  static constexpr int kRows = kFewRows, kPanels = kFewPanels, kTogether = 4;
};
struct Many {
  static constexpr int kRows = kManyRows, kPanels = kManyPanels, kTogether = 2;
};

// `panels` (1 to 4) panels from `panel` on, at `w`, for all rows. Row tiles are
// cut evenly.
template <DenseType kType, class Tile>
WEFT_INLINE void PanelGroup(const MatmulArgs& args, int64_t panel, int panels,
                            const uint8_t* w, int64_t panel_bytes) {
  alignas(64) float sums[Tile::kRows * kSumsStride];
  const int64_t tiles = (args.rows + Tile::kRows - 1) / Tile::kRows;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t row = tile * args.rows / tiles;
    const int rows = static_cast<int>((tile + 1) * args.rows / tiles - row);
    TileRows<kType, Tile::kPanels, Tile::kRows>(
        rows, RowAt(static_cast<const float*>(args.x), args.x_row_bytes, row),
        args.x_row_bytes, w, panel_bytes, args.depth, panels, sums);
    FinishRows(args, panel, panels, row, rows, sums);
  }
}

// kGateQuantize finishes four panels together.
template <class Tile>
WEFT_INLINE int GroupPanels(const MatmulArgs& args, int64_t left) {
  const int most =
      args.epilogue == MatmulEpilogue::kGateQuantize ? 4 : Tile::kTogether;
  return static_cast<int>(left < most ? left : most);
}

template <DenseType kType, class Tile>
void PanelMatmul(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                 uint8_t*) {
  const int64_t panel_bytes = args.depth * kPanelRows * DenseBytes(kType);
  for (int64_t p = panel_begin; p < panel_end;) {
    const int panels = GroupPanels<Tile>(args, panel_end - p);
    PanelGroup<kType, Tile>(args, p, panels, args.weight + p * panel_bytes,
                            panel_bytes);
    p += panels;
  }
}

// rows[16][depth] to panel[depth][16].
WEFT_INLINE void TransposePanel(const float* rows, int64_t depth,
                                float* panel) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    for (int lane = 0; lane < 16; lane += 4) {
      Transpose4x4(rows + lane * depth + k, depth, panel + k * 16 + lane, 16);
    }
  }
  for (; k < depth; ++k) {
    for (int lane = 0; lane < 16; ++lane) {
      panel[k * 16 + lane] = rows[lane * depth + k];
    }
  }
}

// Some panels at a time are widened and transposed in thread scratch, then
// multiplied as packed ones are.
template <class Tile>
void TilesWidened(const MatmulArgs& args, int64_t panel_begin,
                  int64_t panel_end, uint8_t* thread_scratch, WidenRow widen,
                  int64_t weight_row_bytes) {
  const int64_t panel_floats = args.depth * kPanelRows;
  float* panel_data = reinterpret_cast<float*>(thread_scratch);
  float* rows = panel_data + 4 * panel_floats;
  for (int64_t p = panel_begin; p < panel_end;) {
    const int panels = GroupPanels<Tile>(args, panel_end - p);
    for (int i = 0; i < panels; ++i) {
      const int64_t first = (p + i) * kPanelRows;
      const int64_t there = args.weight_rows - first;
      for (int64_t lane = 0; lane < kPanelRows; ++lane) {
        float* row = rows + lane * args.depth;
        if (lane < there) {
          widen(args.weight + (first + lane) * weight_row_bytes, row,
                args.depth);
        } else {
          memset(row, 0, static_cast<size_t>(args.depth) * sizeof(float));
        }
      }
      TransposePanel(rows, args.depth, panel_data + i * panel_floats);
    }
    PanelGroup<DenseType::kF32, Tile>(args, p, panels, thread_scratch,
                                      panel_floats * 4);
    p += panels;
  }
}

void RowsWidened(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                 uint8_t* thread_scratch, WidenRow widen,
                 int64_t weight_row_bytes) {
  (args.rows <= kFewRows ? TilesWidened<Few> : TilesWidened<Many>)(
      args, panel_begin, panel_end, thread_scratch, widen, weight_row_bytes);
}

template <DenseType kType>
void WidenDense(const void* src, float* dst, int64_t n) {
  const uint8_t* p = static_cast<const uint8_t*>(src);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    NativeStore(dst + i, LoadWeights<kType>(p + i * DenseBytes(kType)));
  }
  if (i < n) {
    uint8_t part[64] = {};
    memcpy(part, p + i * DenseBytes(kType),
           static_cast<size_t>((n - i) * DenseBytes(kType)));
    float widened[kLanes];
    NativeStore(widened, LoadWeights<kType>(part));
    memcpy(dst + i, widened, static_cast<size_t>(n - i) * sizeof(float));
  }
}

template <DenseType kType>
void RowsMatmul(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                uint8_t* thread_scratch) {
  RowsWidened(args, panel_begin, panel_end, thread_scratch, WidenDense<kType>,
              args.depth * DenseBytes(kType));
}

constexpr DenseKernels kDenseKernels = {
    .few_f32 = PanelMatmul<DenseType::kF32, Few>,
    .few_f16 = PanelMatmul<DenseType::kF16, Few>,
    .few_bf16 = PanelMatmul<DenseType::kBF16, Few>,
    .many_f32 = PanelMatmul<DenseType::kF32, Many>,
    .many_f16 = PanelMatmul<DenseType::kF16, Many>,
    .many_bf16 = PanelMatmul<DenseType::kBF16, Many>,
    .rows_f32 = RowsMatmul<DenseType::kF32>,
    .rows_f16 = RowsMatmul<DenseType::kF16>,
    .rows_bf16 = RowsMatmul<DenseType::kBF16>,
    .rows_widened = RowsWidened,
};

}  // namespace
}  // namespace weft
