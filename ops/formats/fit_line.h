// Groups and super-blocks of types with a minimum: value = scale * q + base.
//
// The idea is in fit.h. A group of the K types stores -base as a minimum that
// cannot be negative.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/formats/fit.h"
#include "ops/formats/format.h"

namespace weft {
namespace quantize {
namespace {

// --------------------------------------------------------

// value = scale * q + base, q from 0 to max_quant.
struct LineFit {
  float scale;
  float base;
  double error;
};

// Least squares for the integers that (x - base) * inverse gives. With
// base_limited the base is kept at or below 0 (the K types store only such
// minimums). Sums run over x - origin, a value near the data: a far-off range
// would lose its digits.
template <int max_quant, bool base_limited, int n>
LineFit RefitLine(const float* x, const float* w, float inverse, float base,
                  float origin) {
  float w_[kLanes] = {}, q_[kLanes] = {}, x_[kLanes] = {};
  float qq_[kLanes] = {}, xq_[kLanes] = {}, xx_[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float v = x[i + l] - origin, weight = w[i + l];
      const float q =
          LinearLevels<0, max_quant>::Nearest((x[i + l] - base) * inverse);
      const float wq = weight * q, wx = weight * v;
      w_[l] += weight;
      q_[l] += wq;
      x_[l] += wx;
      qq_[l] += wq * q;
      xq_[l] += wx * q;
      xx_[l] += wx * v;
    }
  }
  const double sw = LaneSum(w_), sq = LaneSum(q_), sx = LaneSum(x_);
  const double sqq = LaneSum(qq_), sxq = LaneSum(xq_), sxx = LaneSum(xx_);
  const double determinant = sw * sqq - sq * sq;
  double scale = 0.0, offset = sx / sw;  // of x - origin
  if (determinant > 1e-6 * sw * sqq) {
    scale = (sw * sxq - sq * sx) / determinant;
    offset = (sqq * sx - sq * sxq) / determinant;
  }
  if (base_limited && offset + origin > 0.0) {
    offset = -static_cast<double>(origin);
    scale = sqq > 0.0 ? (sxq - offset * sq) / sqq : 0.0;
  }
  const double error = sxx - 2.0 * (scale * sxq + offset * sx) +
                       scale * scale * sqq + 2.0 * scale * offset * sq +
                       offset * offset * sw;
  return {static_cast<float>(scale), static_cast<float>(offset + origin),
          error};
}

// `starts` counts in multiples of max_quant over the range of the values.
template <int max_quant, bool base_limited, int n>
LineFit FitLine(const float* x, const float* w, const Starts& starts) {
  float low = x[0], high = x[0];
  for (int i = 1; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (base_limited) low = std::min(low, 0.0f);
  if (!(high - low > 1e-30f)) return {0.0f, low, 0.0};
  LineFit best = {0.0f, 0.0f, INFINITY};
  for (int step = 0; step <= starts.steps; ++step) {
    const float reach =
        starts.from + (starts.to - starts.from) * step / starts.steps;
    const LineFit fit = RefitLine<max_quant, base_limited, n>(
        x, w, reach * max_quant / (high - low), low, low);
    if (fit.scale > 0.0f && fit.error < best.error) best = fit;
  }
  for (int round = 0; round < 4 && best.scale > 0.0f; ++round) {
    const LineFit fit = RefitLine<max_quant, base_limited, n>(
        x, w, 1.0f / best.scale, best.base, low);
    if (!(fit.scale > 0.0f && fit.error < best.error)) break;
    best = fit;
  }
  return best;
}

// Squared error of nearest integers at a given line.
template <int max_quant, int n>
float LineErrorAt(const float* x, const float* w, float scale, float base) {
  const float inverse = Inverse(scale);
  float error[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float q =
          LinearLevels<0, max_quant>::Nearest((x[i + l] - base) * inverse);
      const float rest = x[i + l] - (scale * q + base);
      error[l] += w[i + l] * rest * rest;
    }
  }
  return LaneSum(error);
}

// value = float(d) * scales[g] * q - float(dmin) * mins[g].
template <int group>
struct LineSuperBlock {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[kSuperBlockSize / group];
  uint8_t mins[kSuperBlockSize / group];
};

template <int max_quant, int group, int max_scale>
LineSuperBlock<group> FitLineSuperBlock(const float* x, const float* w,
                                        const Starts& starts) {
  constexpr int kGroups = kSuperBlockSize / group;
  const auto nearest = [](float value) {
    return static_cast<int>(LinearLevels<0, max_scale>::Nearest(value));
  };
  LineFit ideal[kGroups];
  float largest_scale = 0.0f, largest_min = 0.0f;
  for (int g = 0; g < kGroups; ++g) {
    ideal[g] =
        FitLine<max_quant, true, group>(x + g * group, w + g * group, starts);
    largest_scale = std::max(largest_scale, ideal[g].scale);
    largest_min = std::max(largest_min, -ideal[g].base);
  }
  LineSuperBlock<group> best = {};
  float d = RoundToF16(largest_scale / max_scale);
  float dmin = RoundToF16(largest_min / max_scale);
  float best_error = ZeroError(x, w);  // that of `best`, all zeros
  for (int round = 0; round < 3; ++round) {
    LineSuperBlock<group> block = {ToStoredF16(d), ToStoredF16(dmin), {}, {}};
    float error = 0.0f;
    // Normal equations of x = d * a - dmin * b with a = scale * q, b = min.
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int g = 0; g < kGroups; ++g) {
      const float* gx = x + g * group;
      const float* gw = w + g * group;
      const int scale = nearest(ideal[g].scale * Inverse(d));
      const int min = nearest(-ideal[g].base * Inverse(dmin));
      float group_error = INFINITY;
      for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, max_scale);
           ++s) {
        for (int m = std::max(min - 1, 0); m <= std::min(min + 1, max_scale);
             ++m) {
          const float tried =
              LineErrorAt<max_quant, group>(gx, gw, d * s, -(dmin * m));
          if (tried < group_error) {
            group_error = tried;
            block.scales[g] = static_cast<uint8_t>(s);
            block.mins[g] = static_cast<uint8_t>(m);
          }
        }
      }
      error += group_error;
      const float inverse = Inverse(d * block.scales[g]);
      const float base = -(dmin * block.mins[g]);
      for (int i = 0; i < group; ++i) {
        const double a = block.scales[g] * LinearLevels<0, max_quant>::Nearest(
                                               (gx[i] - base) * inverse);
        const double b = -static_cast<double>(block.mins[g]);
        aa += gw[i] * a * a;
        ab += gw[i] * a * b;
        bb += gw[i] * b * b;
        xa += gw[i] * gx[i] * a;
        xb += gw[i] * gx[i] * b;
      }
    }
    if (!(error < best_error)) break;
    best_error = error;
    best = block;
    const double determinant = aa * bb - ab * ab;
    if (determinant > 1e-9 * aa * bb) {
      d = RoundToF16(static_cast<float>((xa * bb - xb * ab) / determinant));
      dmin = RoundToF16(static_cast<float>((xb * aa - xa * ab) / determinant));
      if (!(d > 0.0f) || !(dmin >= 0.0f)) break;
    } else if (aa > 0.0 && bb == 0.0) {
      d = RoundToF16(static_cast<float>(xa / aa));
    } else {
      break;
    }
  }
  return best;
}

}  // namespace
}  // namespace quantize
}  // namespace weft
