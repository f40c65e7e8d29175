// RMSNorm, LayerNorm, L2 norm and quantisation of rows.
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
    for (int64_t head = 0; head < args.heads; ++head) {
      const float* x = RowOf(args.x, row) + head * args.columns;
      float* y = RowOf(args.y, row) + head * args.columns;
      const F32x16 inverse = Splat(InverseRms(x, args.columns, args.epsilon));
      if (args.weight == nullptr) {
        ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
          StoreLanes(y + i, LoadLanes(x + i, lanes) * inverse, lanes);
        });
        continue;
      }
      const float* weight = args.weight + head * args.weight_step;
      ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        const F32x16 normed = LoadLanes(x + i, lanes) * inverse;
        StoreLanes(y + i, normed * LoadLanes(weight + i, lanes), lanes);
      });
    }
  }
}

// The same bits as rms_norm followed by silu_gate.
void RmsNormGate(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < args.heads; ++head) {
      const float* x = RowOf(args.x, row) + head * args.columns;
      const float* gate = RowOf(args.gate, row) + head * args.columns;
      float* y = RowOf(args.y, row) + head * args.columns;
      const float* weight = args.weight + head * args.weight_step;
      const F32x16 inverse = Splat(InverseRms(x, args.columns, args.epsilon));
      ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        const F32x16 normed = LoadLanes(x + i, lanes) * inverse;
        const F32x16 scaled = normed * LoadLanes(weight + i, lanes);
        StoreLanes(y + i, Silu(LoadLanes(gate + i, lanes)) * scaled, lanes);
      });
    }
  }
}

void L2Norm(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < args.heads; ++head) {
      const float* x = RowOf(args.x, row) + head * args.columns;
      float* y = RowOf(args.y, row) + head * args.columns;
      F32x16 sum = {};
      ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        const F32x16 v = LoadLanes(x + i, lanes);
        sum = MultiplyAdd(v, v, sum);
      });
      const float length = __builtin_sqrtf(ReduceSum(sum));
      const F32x16 divisor =
          Splat(length < args.epsilon ? args.epsilon : length);
      ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        StoreLanes(y + i, LoadLanes(x + i, lanes) / divisor, lanes);
      });
    }
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

// Mean, and 1 / sqrt(variance + epsilon).
struct Moments {
  F32x16 mean, inverse;
};

WEFT_INLINE Moments MomentsOf(const float* x, int64_t columns, float epsilon) {
  const float count = static_cast<float>(columns);
  F32x16 sum = {};
  ForColumns(columns, [&](int64_t i, int lanes)
                          WEFT_LAMBDA { sum = sum + LoadLanes(x + i, lanes); });
  const F32x16 mean = Splat(ReduceSum(sum) / count);
  F32x16 squares = {};
  ForColumns(columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
    const F32x16 d =
        Select(LanesBelow(lanes), LoadLanes(x + i, lanes) - mean, F32x16{});
    squares = MultiplyAdd(d, d, squares);
  });
  const float variance = ReduceSum(squares) / count;
  return {mean, Splat(1.0f / __builtin_sqrtf(variance + epsilon))};
}

// `bias` may be null.
WEFT_INLINE F32x16 LayerNormLanes(const float* x, const Moments& moments,
                                  const float* weight, const float* bias,
                                  int64_t i, int lanes) {
  const F32x16 normed =
      (LoadLanes(x + i, lanes) - moments.mean) * moments.inverse;
  const F32x16 result = normed * LoadLanes(weight + i, lanes);
  return bias == nullptr ? result : result + LoadLanes(bias + i, lanes);
}

void LayerNorm(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < args.heads; ++head) {
      const float* x = RowOf(args.x, row) + head * args.columns;
      float* y = RowOf(args.y, row) + head * args.columns;
      const float* weight = args.weight + head * args.weight_step;
      const float* bias = args.bias;
      if (bias != nullptr) bias += head * args.weight_step;
      const Moments moments = MomentsOf(x, args.columns, args.epsilon);
      ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
        StoreLanes(y + i, LayerNormLanes(x, moments, weight, bias, i, lanes),
                   lanes);
      });
    }
  }
}

void LayerNormQuantize(const NormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    const Moments moments = MomentsOf(x, args.columns, args.epsilon);
    for (int64_t i = 0; i < args.columns; i += 32) {
      QuantizeBlock(
          LayerNormLanes(x, moments, args.weight, args.bias, i, 16),
          LayerNormLanes(x, moments, args.weight, args.bias, i + 16, 16),
          QuantizedBlockAt(args.quantized, args.rows, args.columns, row,
                           i / 32));
    }
  }
}

constexpr RowKernel<NormArgs> kNormKernels[] = {
    {"rms_norm", RmsNorm},
    {"rms_norm_gate", RmsNormGate},
    {"layer_norm", LayerNorm},
    {"l2_norm", L2Norm},
    {"rms_norm_quantize", RmsNormQuantize},
    {"layer_norm_quantize", LayerNormQuantize},
};

constexpr RowKernel<QuantizeRowsArgs> kQuantizeKernels[] = {
    {"quantize_rows", QuantizeRows}};

}  // namespace
}  // namespace weft
