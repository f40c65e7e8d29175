// RMSNorm, LayerNorm and quantisation of rows.
//
// Sums run in 16 lanes (column i in lane i % 16), which are then reduced by the
// fixed tree of ReduceSum; a tail fills its unused lanes with zeros.
#pragma once

#include "ops/kernels/quantized_rows.h"
#include "ops/kernels/rows/row_access.inl"

namespace weft {
namespace {

// 1 / sqrt(mean of squares + epsilon).
WEFT_INLINE float InverseRms(const float* x, int64_t columns, float epsilon) {
  F32x16 sum = {};
  ForColumns(columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
    const F32x16 v = LoadLanes(x + i, lanes);
    sum = MultiplyAdd(v, v, sum);
  });
  const float mean = ReduceSum(sum) / static_cast<float>(columns);
  return 1.0f / __builtin_sqrtf(mean + epsilon);
}

void RmsNorm(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    float* y = RowOf(args.y, row);
    const F32x16 inverse = Splat(InverseRms(x, args.columns, args.epsilon));
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 normed = LoadLanes(x + i, lanes) * inverse;
      StoreLanes(y + i, normed * LoadLanes(args.weight + i, lanes), lanes);
    });
  }
}

void RmsNormQuantize(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    const F32x16 inverse = Splat(InverseRms(x, args.columns, args.epsilon));
    for (int64_t i = 0; i < args.columns; i += 32) {
      const F32x16 low = (Load(x + i) * inverse) * Load(args.weight + i);
      const F32x16 high =
          (Load(x + i + 16) * inverse) * Load(args.weight + i + 16);
      QuantizeBlock(low, high,
                    QuantizedBlockAt(args.quantized, args.rows, args.columns,
                                     row, i / 32));
    }
  }
}

void QuantizeRows(const QuantizeRowsArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    for (int64_t i = 0; i < args.columns; i += 32) {
      QuantizeBlock(Load(x + i), Load(x + i + 16),
                    QuantizedBlockAt(args.quantized, args.rows, args.columns,
                                     row, i / 32));
    }
  }
}

void LayerNorm(const NormArgs& args, int64_t begin, int64_t end) {
  const float count = static_cast<float>(args.columns);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    float* y = RowOf(args.y, row);
    F32x16 sum = {};
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      sum = sum + LoadLanes(x + i, lanes);
    });
    const F32x16 mean = Splat(ReduceSum(sum) / count);
    F32x16 squares = {};
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 d =
          Select(LanesBelow(lanes), LoadLanes(x + i, lanes) - mean, F32x16{});
      squares = MultiplyAdd(d, d, squares);
    });
    const float variance = ReduceSum(squares) / count;
    const F32x16 inverse =
        Splat(1.0f / __builtin_sqrtf(variance + args.epsilon));
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 normed = (LoadLanes(x + i, lanes) - mean) * inverse;
      F32x16 result = normed * LoadLanes(args.weight + i, lanes);
      if (args.bias != nullptr) {
        result = result + LoadLanes(args.bias + i, lanes);
      }
      StoreLanes(y + i, result, lanes);
    });
  }
}

}  // namespace
}  // namespace weft
