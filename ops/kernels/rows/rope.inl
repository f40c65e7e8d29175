// Rotary position embedding.
//
// A row's sines and cosines are computed once for all of its heads, in the
// order in which the rotation reads them, so that it is two products and a sum
// per value: y = x * cosine + partner * sine, the sine negative for the first
// of a pair. (a + b * -s has the bits of a - b * s.)
#pragma once

#include "ops/kernels/rows/row_access.inl"
#include "ops/kernels/rows/sin_cos.inl"

namespace weft {
namespace {

constexpr int kMaxPairs = kMaxHeadDim / 2;

struct RopeTables {
  double frequency[kMaxPairs + 8];  // radians per position
  // kInterleaved: one entry per value. kHalves: one entry per pair.
  float cosine[kMaxHeadDim + 16];
  float sine[kMaxHeadDim + 16];
};

WEFT_INLINE void RopeFrequencies(const RopeArgs& args, RopeTables* tables) {
  const int64_t pairs = args.rope_dims / 2;
  // A geometric progression in double: after 256 products still exact to
  // 1e-13.
  const double step = __builtin_pow(args.frequency_base,
                                    -2.0 / static_cast<double>(args.rope_dims));
  double frequency = 1.0;
  for (int64_t i = 0; i < pairs; ++i) {
    const double factor = args.factors == nullptr ? 1.0 : args.factors[i];
    double scale = args.frequency_scale;
    if (args.ramp_end > 0.0) {
      double scaled = (static_cast<double>(i) - args.ramp_begin) /
                      (args.ramp_end - args.ramp_begin);
      scaled = scaled < 0.0 ? 0.0 : scaled > 1.0 ? 1.0 : scaled;
      scale = 1.0 + (scale - 1.0) * scaled;
    }
    tables->frequency[i] = frequency * scale / factor;
    frequency *= step;
  }
  for (int64_t i = pairs; i < pairs + 8; ++i) tables->frequency[i] = 0.0;
}

WEFT_INLINE void RopeAngles(const RopeArgs& args, int64_t row,
                            RopeTables* tables) {
  const int64_t pairs = args.rope_dims / 2;
  const F64x8 position = Splat64(static_cast<double>(args.positions[row]));
  for (int64_t i = 0; i < pairs; i += 8) {
    F64x8 frequency;
    memcpy(&frequency, tables->frequency + i, sizeof(frequency));
    F32x8 s, c;
    SinCos(position * frequency, &s, &c);
    s *= args.magnitude;
    c *= args.magnitude;
    if (args.halves) {
      memcpy(tables->cosine + i, &c, sizeof(c));
      memcpy(tables->sine + i, &s, sizeof(s));
    } else {
      for (int j = 0; j < 8; ++j) {
        tables->cosine[2 * (i + j)] = c[j];
        tables->cosine[2 * (i + j) + 1] = c[j];
        tables->sine[2 * (i + j)] = -s[j];
        tables->sine[2 * (i + j) + 1] = s[j];
      }
    }
  }
}

// x and y may be the same head.
WEFT_INLINE void RotateHead(const RopeArgs& args, const RopeTables& tables,
                            const float* x, float* y) {
  const int64_t dims = args.rope_dims;
  if (args.halves) {
    const int64_t half = dims / 2;
    ForColumns(half, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 first = LoadLanes(x + i, lanes);
      const F32x16 second = LoadLanes(x + half + i, lanes);
      const F32x16 c = Load(tables.cosine + i);
      const F32x16 s = Load(tables.sine + i);
      StoreLanes(y + i, first * c + second * -s, lanes);
      StoreLanes(y + half + i, second * c + first * s, lanes);
    });
  } else {
    ForColumns(dims, [&](int64_t i, int lanes) WEFT_LAMBDA {
      const F32x16 v = LoadLanes(x + i, lanes);
      const F32x16 result =
          v * Load(tables.cosine + i) + SwapPairs(v) * Load(tables.sine + i);
      StoreLanes(y + i, result, lanes);
    });
  }
  if (x != y) {
    for (int64_t i = dims; i < args.head_dim; ++i) y[i] = x[i];
  }
}

void Rope(const RopeArgs& args, int64_t begin, int64_t end) {
  RopeTables tables;
  RopeFrequencies(args, &tables);
  for (int64_t row = begin; row < end; ++row) {
    RopeAngles(args, row, &tables);
    const float* x = RowOf(args.x, row);
    float* y = RowOf(args.y, row);
    for (int64_t head = 0; head < args.heads; ++head) {
      RotateHead(args, tables, x + head * args.head_dim,
                 y + head * args.head_dim);
    }
  }
}

constexpr RowKernel<RopeArgs> kRopeKernels[] = {{"rope", Rope}};

}  // namespace
}  // namespace weft
