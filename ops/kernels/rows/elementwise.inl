// Elementwise functions, softmax, gathering rows.
#pragma once

#include "ops/kernels/rows/row_access.inl"

namespace weft {
namespace {

template <class Function>
WEFT_INLINE void Binary(const BinaryArgs& args, int64_t begin, int64_t end,
                        Function f) {
  for (int64_t row = begin; row < end; ++row) {
    const float* a = RowOf(args.a, row);
    const float* b = RowOf(args.b, row);
    float* y = RowOf(args.y, row);
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 v = f(LoadLanes(a + i, lanes), LoadLanes(b + i, lanes));
      StoreLanes(y + i, v, lanes);
    });
  }
}

template <class Function>
WEFT_INLINE void Unary(const UnaryArgs& args, int64_t begin, int64_t end,
                       Function f) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    float* y = RowOf(args.y, row);
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      StoreLanes(y + i, f(LoadLanes(x + i, lanes)), lanes);
    });
  }
}

void Add(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end,
         [](F32x16 a, F32x16 b) WEFT_LAMBDA { return a + b; });
}

void Mul(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end,
         [](F32x16 a, F32x16 b) WEFT_LAMBDA { return a * b; });
}

void SiluGate(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end,
         [](F32x16 a, F32x16 b) WEFT_LAMBDA { return Silu(a) * b; });
}

void GeluGate(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end,
         [](F32x16 a, F32x16 b) WEFT_LAMBDA { return GeluTanh(a) * b; });
}

void ClampedGateRows(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end, [&](F32x16 a, F32x16 b) WEFT_LAMBDA {
    return ClampedGate(a, b, args.limit, args.slope);
  });
}

void SiluRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA { return Silu(x); });
}

// x * Phi(x), Phi the normal distribution; Hendrycks and Gimpel 2016
// (arXiv:1606.08415). Phi(x) = erfc(-x / sqrt 2) / 2, where erfc(z) for z >= 0
// is the Chebyshev fit of Press et al., Numerical Recipes, section 6.2
// (relative error 1.2e-7): t exp(-z^2 + P(t)) with t = 1 / (1 + z / 2).
WEFT_INLINE F32x16 Gelu(F32x16 x) {
  const F32x16 z = Absolute(x) * Splat(0.70710678118654752f);
  const F32x16 t = Splat(1.0f) / MultiplyAdd(Splat(0.5f), z, Splat(1.0f));
  F32x16 p = Splat(0.17087277f);
  p = MultiplyAdd(p, t, Splat(-0.82215223f));
  p = MultiplyAdd(p, t, Splat(1.48851587f));
  p = MultiplyAdd(p, t, Splat(-1.13520398f));
  p = MultiplyAdd(p, t, Splat(0.27886807f));
  p = MultiplyAdd(p, t, Splat(-0.18628806f));
  p = MultiplyAdd(p, t, Splat(0.09678418f));
  p = MultiplyAdd(p, t, Splat(0.37409196f));
  p = MultiplyAdd(p, t, Splat(1.00002368f));
  p = MultiplyAdd(p, t, Splat(-1.26551223f));
  const F32x16 erfc = t * Exp(MultiplyAdd(-z, z, p));
  const F32x16 twice = Select(Less(x, F32x16{}), erfc, Splat(2.0f) - erfc);
  return (Splat(0.5f) * x) * twice;
}

void GeluRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA { return Gelu(x); });
}

void GeluTanhRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA { return GeluTanh(x); });
}

void Scale(const UnaryArgs& args, int64_t begin, int64_t end) {
  const F32x16 factor = Splat(args.parameter);
  Unary(args, begin, end, [&](F32x16 x) WEFT_LAMBDA { return x * factor; });
}

void Softcap(const UnaryArgs& args, int64_t begin, int64_t end) {
  const F32x16 cap = Splat(args.parameter);
  Unary(args, begin, end,
        [&](F32x16 x) WEFT_LAMBDA { return cap * Tanh(x / cap); });
}

// e^(x - max) / sum. Entries of -inf give 0; a row of nothing else gives NaN.
void Softmax(const UnaryArgs& args, int64_t begin, int64_t end) {
  const F32x16 lowest = Splat(-__builtin_inff());
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    float* y = RowOf(args.y, row);
    F32x16 largest = lowest;
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 v =
          Select(LanesBelow(lanes), LoadLanes(x + i, lanes), lowest);
      largest = Max(v, largest);
    });
    const bool sinks = args.sinks != nullptr;
    const F32x16 sink = Splat(sinks ? args.sinks[row % args.heads] : 0.0f);
    if (sinks) largest = Max(sink, largest);
    const F32x16 maximum = Splat(ReduceMax(largest));
    F32x16 sum = {};
    if (sinks) sum = Select(LanesBelow(1), Exp(sink - maximum), F32x16{});
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 e = Exp(LoadLanes(x + i, lanes) - maximum);
      sum = sum + Select(LanesBelow(lanes), e, F32x16{});
      StoreLanes(y + i, e, lanes);
    });
    const F32x16 inverse = Splat(1.0f / ReduceSum(sum));
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      StoreLanes(y + i, LoadLanes(y + i, lanes) * inverse, lanes);
    });
  }
}

void SigmoidRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA {
    return Splat(1.0f) / (Splat(1.0f) + Exp(-x));
  });
}

void ReluRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA {
    return Select(Less(x, F32x16{}), F32x16{}, x);
  });
}

// ln(1 + e^x) = max(x, 0) + ln(1 + u) with u = e^-|x|, and ln(1 + u) is twice
// the inverse hyperbolic tangent of s = u / (2 + u), at most 1/3: eight terms
// of its series.
void SoftplusRows(const UnaryArgs& args, int64_t begin, int64_t end) {
  Unary(args, begin, end, [](F32x16 x) WEFT_LAMBDA {
    const F32x16 u = Exp(-Absolute(x));
    const F32x16 s = u / (Splat(2.0f) + u);
    const F32x16 square = s * s;
    F32x16 p = Splat(1.0f / 15.0f);
    p = MultiplyAdd(p, square, Splat(1.0f / 13.0f));
    p = MultiplyAdd(p, square, Splat(1.0f / 11.0f));
    p = MultiplyAdd(p, square, Splat(1.0f / 9.0f));
    p = MultiplyAdd(p, square, Splat(1.0f / 7.0f));
    p = MultiplyAdd(p, square, Splat(1.0f / 5.0f));
    p = MultiplyAdd(p, square, Splat(1.0f / 3.0f));
    p = MultiplyAdd(p, square, Splat(1.0f));
    return Max(x, F32x16{}) + Splat(2.0f) * s * p;
  });
}

void WeightedSum(const WeightedSumArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    const float* weights = RowOf(args.weights, row);
    float* y = RowOf(args.y, row);
    ForColumns(args.columns, [&](int64_t i, int lanes) WEFT_LAMBDA {
      F32x16 sum = LoadLanes(x + i, lanes) * Splat(weights[0]);
      for (int64_t part = 1; part < args.parts; ++part) {
        sum = MultiplyAdd(LoadLanes(x + part * args.columns + i, lanes),
                          Splat(weights[part]), sum);
      }
      StoreLanes(y + i, sum, lanes);
    });
  }
}

void TakeRows(const TakeRowsArgs& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    memcpy(args.y + i * args.y_row_bytes,
           args.table + args.indices[i] * args.table_row_bytes,
           static_cast<size_t>(args.copy_bytes));
  }
}

constexpr RowKernel<BinaryArgs> kBinaryKernels[] = {
    {"add", Add},
    {"mul", Mul},
    {"silu_gate", SiluGate},
    {"gelu_gate", GeluGate},
    {"clamped_gate", ClampedGateRows},
};

constexpr RowKernel<UnaryArgs> kUnaryKernels[] = {
    {"scale", Scale},         {"softcap", Softcap},       {"silu", SiluRows},
    {"sigmoid", SigmoidRows}, {"softplus", SoftplusRows}, {"relu", ReluRows},
};

constexpr GeluKernel kGeluKernels[] = {
    {"gelu", GeluRows, false},
    {"gelu", GeluTanhRows, true},
};

constexpr RowKernel<UnaryArgs> kSoftmaxKernels[] = {{"softmax", Softmax}};
constexpr RowKernel<WeightedSumArgs> kWeightedSumKernels[] = {
    {"weighted_sum", WeightedSum}};
constexpr RowKernel<TakeRowsArgs> kTakeRowsKernels[] = {
    {"take_rows", TakeRows}};

}  // namespace
}  // namespace weft
