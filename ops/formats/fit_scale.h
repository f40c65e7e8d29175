// Groups and super-blocks of types without a minimum: value = scale * level.
//
// The idea is in fit.h. Functions are templates on the level set, so that loops
// have fixed lengths and rounding is inline.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/formats/fit.h"
#include "ops/formats/format.h"

namespace weft {
namespace quantize {
namespace {

// -------------------------------------------------------------

// Least squares for the levels that `inverse` gives.
struct ScaleFit {
  float scale;
  float gain;  // squared error that the fit removes from sum(w x^2)
};

template <class Levels, int n>
ScaleFit Refit(const float* x, const float* w, float inverse) {
  float xq[kLanes] = {}, qq[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float q = Levels::Nearest(x[i + l] * inverse);
      xq[l] += w[i + l] * x[i + l] * q;
      qq[l] += w[i + l] * q * q;
    }
  }
  const float product = LaneSum(xq), square = LaneSum(qq);
  if (!(square > 0.0f)) return {0.0f, 0.0f};
  return {product / square, product / square * product};
}

// The best scale of n values; 0 when all are 0.
template <class Levels, int n>
float FitScale(const float* x, const float* w, const Starts& starts) {
  float extreme = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  // 1 / x would overflow; float16 scales cannot hold such values anyway.
  if (std::fabs(extreme) < 1e-30f) return 0.0f;
  ScaleFit best = {0.0f, 0.0f};
  for (int sign = 0; sign < (starts.both_signs ? 2 : 1); ++sign) {
    const float end = sign == 0 ? Levels::kLow : -Levels::kLow;
    for (int step = 0; step <= starts.steps; ++step) {
      const float reach =
          starts.from + (starts.to - starts.from) * step / starts.steps;
      const ScaleFit fit = Refit<Levels, n>(x, w, reach * end / extreme);
      if (fit.gain > best.gain) best = fit;
    }
  }
  for (int round = 0; round < 4 && best.scale != 0.0f; ++round) {
    const ScaleFit fit = Refit<Levels, n>(x, w, 1.0f / best.scale);
    if (!(fit.gain > best.gain)) break;
    best = fit;
  }
  return best.scale;
}

// Squared error of nearest levels at a given scale.
template <class Levels, int n>
float ErrorAt(const float* x, const float* w, float scale) {
  const float inverse = Inverse(scale);
  float error[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float rest = x[i + l] - scale * Levels::Nearest(x[i + l] * inverse);
      error[l] += w[i + l] * rest * rest;
    }
  }
  return LaneSum(error);
}

// A super-block of symmetric groups: value = float(d) * scales[g] * level.
template <int group>
struct ScaledSuperBlock {
  uint16_t d;
  int scales[kSuperBlockSize / group];
};

// Group scales are integers from scale_low to scale_high, scale_low = -(high +
// 1).
template <class Levels, int group, int scale_low, int scale_high>
ScaledSuperBlock<group> FitScaledSuperBlock(const float* x, const float* w,
                                            const Starts& starts) {
  constexpr int kGroups = kSuperBlockSize / group;
  ScaledSuperBlock<group> best = {};
  float ideal[kGroups];
  float extreme = 0.0f;
  for (int g = 0; g < kGroups; ++g) {
    ideal[g] = FitScale<Levels, group>(x + g * group, w + g * group, starts);
    if (std::fabs(ideal[g]) > std::fabs(extreme)) extreme = ideal[g];
  }
  if (extreme == 0.0f) return best;

  float d = RoundToF16(extreme / scale_low);
  float best_error = ZeroError(x, w);  // that of `best`, all zeros
  for (int round = 0; round < 3; ++round) {
    ScaledSuperBlock<group> block = {ToStoredF16(d), {}};
    float error = 0.0f, product = 0.0f, square = 0.0f;
    for (int g = 0; g < kGroups; ++g) {
      const float* gx = x + g * group;
      const float* gw = w + g * group;
      const float limited = std::min(
          std::max(ideal[g] * Inverse(d), static_cast<float>(scale_low)),
          static_cast<float>(scale_high));
      const int middle = static_cast<int>(RoundToInteger(limited));
      float group_error = INFINITY;
      for (int s = std::max(middle - 1, scale_low);
           s <= std::min(middle + 1, scale_high); ++s) {
        const float tried = ErrorAt<Levels, group>(gx, gw, d * s);
        if (tried < group_error) {
          group_error = tried;
          block.scales[g] = s;
        }
      }
      error += group_error;
      const float inverse = Inverse(d * block.scales[g]);
      for (int i = 0; i < group; ++i) {
        const float unit = block.scales[g] * Levels::Nearest(gx[i] * inverse);
        product += gw[i] * gx[i] * unit;
        square += gw[i] * unit * unit;
      }
    }
    if (!(error < best_error)) break;
    best_error = error;
    best = block;
    if (!(square > 0.0f)) break;
    d = RoundToF16(product / square);
  }
  return best;
}

}  // namespace
}  // namespace quantize
}  // namespace weft
