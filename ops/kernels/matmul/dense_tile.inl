// The register tile of dense matmuls: R rows of x times V registers of weight
// rows, over the whole depth. The order of summation is in dense_isa.h.
//
// Not inlined, so that the accumulators stay in registers.
#pragma once

#include "ops/kernels/matmul/dense_isa.h"
#include "ops/kernels/matmul/panel_epilogue.h"
#include "ops/kernels/native.h"

namespace weft {
namespace {

// Registers per panel.
constexpr int kPanelNatives = kPanelRows / kLanes;

template <DenseType kType>
WEFT_INLINE Native LoadWeights(const uint8_t* p) {
  switch (kType) {
    case DenseType::kF32:
      return NativeLoad(reinterpret_cast<const float*>(p));
    case DenseType::kF16:
      return NativeWidenF16(p);
    case DenseType::kBF16:
      return NativeWidenBF16(p);
  }
}

// sums[r * kSumsStride + i] for i < V * kLanes. `w` is the first panel, panels
// lie `panel_bytes` apart.
template <DenseType kType, int R, int V>
__attribute__((noinline)) void DenseTile(const float* x, int64_t x_row_bytes,
                                         const uint8_t* w, int64_t panel_bytes,
                                         int64_t depth, float* sums) {
  constexpr int kBytes = kType == DenseType::kF32 ? 4 : 2;
  const int64_t block = DenseSumBlock(depth);
  // A pointer for every third row: with the addressing modes of the CPU few
  // enough registers.
  constexpr int kBases = (R + 2) / 3;
  const uint8_t* bases[kBases];
  for (int i = 0; i < kBases; ++i) {
    bases[i] = reinterpret_cast<const uint8_t*>(x) + 3 * i * x_row_bytes;
  }
  for (int64_t begin = 0; begin < depth; begin += block) {
    const int64_t end = begin + block < depth ? begin + block : depth;
    Native sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = NativeZero();
    }
    for (int64_t k = begin; k < end; ++k) {
      Native weight[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        const uint8_t* p = w + v / kPanelNatives * panel_bytes +
                           v % kPanelNatives * kLanes * kBytes;
        weight[v] = LoadWeights<kType>(p);
        // Few rows wait for memory: ask for what comes 4 KB later.
        if (R <= 3) __builtin_prefetch(p + 4096, 0, 2);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Native value = NativeSplat(*reinterpret_cast<const float*>(
            bases[r / 3] + r % 3 * x_row_bytes));
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) {
          sum[r][v] = NativeMultiplyAdd(value, weight[v], sum[r][v]);
        }
      }
      w += kPanelRows * kBytes;
#pragma GCC unroll 16
      for (int i = 0; i < kBases; ++i) bases[i] += sizeof(float);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        float* place = sums + r * kSumsStride + v * kLanes;
        NativeStore(place,
                    begin == 0 ? sum[r][v] : NativeLoad(place) + sum[r][v]);
      }
    }
  }
}

// Tiles of few and of many rows: rows of x, and panels.
#if defined(__AVX512F__)
constexpr int kFewRows = 6, kFewPanels = 4;
constexpr int kManyRows = 12, kManyPanels = 2;
#else
constexpr int kFewRows = 1, kFewPanels = 4;
constexpr int kManyRows = 6, kManyPanels = 1;
#endif

template <DenseType kType, int kPanels, int R>
WEFT_INLINE void TilePanels(const float* x, int64_t x_row_bytes,
                            const uint8_t* w, int64_t panel_bytes,
                            int64_t depth, int panels, float* sums) {
  int i = 0;
  for (; i + kPanels <= panels; i += kPanels) {
    DenseTile<kType, R, kPanels * kPanelNatives>(
        x, x_row_bytes, w + i * panel_bytes, panel_bytes, depth, sums + 16 * i);
  }
  for (; i < panels; ++i) {
    DenseTile<kType, R, kPanelNatives>(x, x_row_bytes, w + i * panel_bytes,
                                       panel_bytes, depth, sums + 16 * i);
  }
}

template <DenseType kType, int kPanels, int R>
WEFT_INLINE void TileRows(int rows, const float* x, int64_t x_row_bytes,
                          const uint8_t* w, int64_t panel_bytes, int64_t depth,
                          int panels, float* sums) {
  if (rows == R) {
    TilePanels<kType, kPanels, R>(x, x_row_bytes, w, panel_bytes, depth, panels,
                                  sums);
  } else if constexpr (R > 1) {
    TileRows<kType, kPanels, R - 1>(rows, x, x_row_bytes, w, panel_bytes, depth,
                                    panels, sums);
  }
}

}  // namespace
}  // namespace weft
