// What a panel matmul does with finished sums: bias, then the epilogue of
// matmul.h. Costs nothing that shows: it runs once per tile over the whole
// depth.
#pragma once

#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

// Sums of one row of a panel group: up to four panels of 16.
constexpr int kSumsStride = 64;

WEFT_INLINE F32x16 LoadLanes(const float* p, int n) {
  return n == 16 ? Load(p) : LoadPart(p, n);
}
WEFT_INLINE void StoreLanes(float* p, F32x16 v, int n) {
  if (n == 16) {
    Store(p, v);
  } else {
    StorePart(p, v, n);
  }
}

WEFT_INLINE float* RowAt(float* base, int64_t row_bytes, int64_t row) {
  return reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(base) +
                                  row * row_bytes);
}
WEFT_INLINE const float* RowAt(const float* base, int64_t row_bytes,
                               int64_t row) {
  return reinterpret_cast<const float*>(reinterpret_cast<const uint8_t*>(base) +
                                        row * row_bytes);
}

// Lanes of 16 that exist from `first` on.
WEFT_INLINE int LanesFrom(int64_t first, int64_t count) {
  const int64_t left = count - first;
  return static_cast<int>(left < 16 ? left : 16);
}

// activation(gate) * up of outputs 16 * pair ...; `sums` at the gate panel.
WEFT_INLINE F32x16 GatedLanes(const MatmulArgs& args, int64_t pair, int n,
                              const float* sums) {
  F32x16 gate = Load(sums), up = Load(sums + 16);
  if (args.bias != nullptr) {
    gate = gate + LoadLanes(args.bias + 32 * pair, n);
    up = up + LoadLanes(args.bias + 32 * pair + 16, n);
  }
  switch (args.activation) {
    case GateActivation::kSilu:
      return Silu(gate) * up;
    case GateActivation::kGeluTanh:
      return GeluTanh(gate) * up;
    case GateActivation::kClamped:
      break;
  }
  return ClampedGate(gate, up, args.limit, args.slope);
}

// Where the floats of row m of x go.
WEFT_INLINE float* ResultRow(const MatmulArgs& args, int64_t row) {
  return RowAt(args.y, args.y_row_bytes,
               args.places == nullptr ? row : args.places[row]);
}

// Where the 32 rounded numbers of row m of x go that are block b of `columns`.
WEFT_INLINE QuantizedBlock ResultBlock(const MatmulArgs& args, int64_t columns,
                                       int64_t row, int64_t block) {
  if (args.places == nullptr) {
    return QuantizedBlockAt(args.quantized, args.rows, columns, row, block);
  }
  const int64_t part = args.places[row] % args.parts;
  return QuantizedBlockAt(args.quantized, args.result_rows,
                          columns * args.parts, args.places[row] / args.parts,
                          part * (columns / 32) + block);
}

// y = sum (+ bias) (+ residual) for 16 lanes of each row, of which n exist.
template <bool full>
WEFT_INLINE void FinishPanel(const MatmulArgs& args, int64_t first, int n,
                             int64_t row, int rows, const float* sums) {
  const bool residual = args.epilogue == MatmulEpilogue::kResidual;
  const int lanes = full ? 16 : n;
  const float* r = nullptr;
  if (residual) r = RowAt(args.residual, args.residual_row_bytes, row) + first;
  for (int m = 0; m < rows; ++m, sums += kSumsStride) {
    F32x16 v = Load(sums);
    if (args.bias != nullptr) v = v + LoadLanes(args.bias + first, lanes);
    if (residual) {
      v = v + LoadLanes(r, lanes);
      r = RowAt(r, args.residual_row_bytes, 1);
    }
    StoreLanes(ResultRow(args, row + m) + first, v, lanes);
  }
}

// Finishes `panels` panels from `panel` on, for rows row .. row+rows-1 of x.
// sums[r * kSumsStride + 16 * i + lane] belongs to panel + i.
WEFT_INLINE void FinishRows(const MatmulArgs& args, int64_t panel, int panels,
                            int64_t row, int rows, const float* sums) {
  const int64_t outputs = args.weight_rows / 2;  // of the gate epilogues
  switch (args.epilogue) {
    case MatmulEpilogue::kStore:
    case MatmulEpilogue::kResidual:
      for (int i = 0; i < panels; ++i) {
        const int64_t first = kPanelRows * (panel + i);
        const int n = LanesFrom(first, args.weight_rows);
        if (n == 16) {
          FinishPanel<true>(args, first, n, row, rows, sums + 16 * i);
        } else {
          FinishPanel<false>(args, first, n, row, rows, sums + 16 * i);
        }
      }
      break;
    case MatmulEpilogue::kGate:
      for (int i = 0; i < panels; i += 2) {
        const int64_t pair = (panel + i) / 2;
        const int n = LanesFrom(16 * pair, outputs);
        for (int r = 0; r < rows; ++r) {
          StoreLanes(ResultRow(args, row + r) + 16 * pair,
                     GatedLanes(args, pair, n, sums + r * kSumsStride + 16 * i),
                     n);
        }
      }
      break;
    case MatmulEpilogue::kGateQuantize:
      for (int r = 0; r < rows; ++r, sums += kSumsStride) {
        const F32x16 low = GatedLanes(args, panel / 2, 16, sums);
        const F32x16 high = GatedLanes(args, panel / 2 + 1, 16, sums + 32);
        QuantizeBlock(low, high,
                      ResultBlock(args, outputs, row + r, panel / 4));
      }
      break;
  }
}

// Panels whose sums an epilogue needs together.
WEFT_INLINE int PanelsTogether(MatmulEpilogue epilogue) {
  switch (epilogue) {
    case MatmulEpilogue::kGate:
      return 2;
    case MatmulEpilogue::kGateQuantize:
      return 4;
    default:
      return 1;
  }
}

}  // namespace
}  // namespace weft
