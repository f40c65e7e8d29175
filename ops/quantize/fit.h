// The searches behind every quantiser: which scale (and minimum) loses least.
//
// A group of values x with weights w becomes scale * q (symmetric types) or
// scale * q - min. For FIXED integers q the best scale (and minimum) is a
// weighted least-squares line, in closed form; for a FIXED scale the best
// integers are the nearest ones. The error has many local minima in the scale,
// so both steps are tried from a range of starting scales around "the largest
// value meets the last level", then alternated from the best start until
// nothing improves (Lloyd's algorithm, 1982, with levels on a line).
//
// A super-block (K types) shares float16 d over groups whose scales are small
// integers: groups are fitted alone, their scales rounded to multiples of d,
// the integers next to the rounded ones tried with the error they really give,
// and d refitted by least squares over all groups.
//
// Sums run in kLanes interleaved accumulators, so results are the same on every
// machine and the compiler may use vectors. Inputs are finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/kernels/blocks.h"
#include "ops/kernels/half.h"

namespace weft {
namespace quantize {

constexpr int kLanes = 8;

// To the nearest integer, ties to even, for |value| < 2^22.
inline float RoundToInteger(float value) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: no fraction bits left
  return (value + kShift) - kShift;
}

// Least squares may put a scale just beyond the largest float16.
inline uint16_t ToStoredF16(float value) {
  return F32ToF16(std::min(std::max(value, -65504.0f), 65504.0f));
}

inline float RoundToF16(float value) { return F16ToF32(ToStoredF16(value)); }

inline float Inverse(float scale) {
  return scale != 0.0f ? 1.0f / scale : 0.0f;
}

inline float LaneSum(const float lanes[kLanes]) {
  float sum = 0.0f;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

// Weights 1 + kEmphasis * x^2 / mean(x^2). 0 is plain squared error, right when
// activations are independent of weights; a little more protects large values,
// which carry more of a dot product. Measured on the default model at 0, 0.1,
// 0.25, 0.5, geometric means over the block types relative to files of the
// usual quantiser: error weighted by x^2 1.04, 0.99, 0.96, 0.94; squared error
// of logits 0.84, 0.87, 0.87, 0.89, single types moving by 10% either way.
constexpr float kEmphasis = 0.1f;

template <int n>
void FillWeights(const float* x, float* weights) {
  float squares = 0.0f;
  for (int i = 0; i < n; ++i) squares += x[i] * x[i];
  const float factor = squares > 0.0f ? kEmphasis * n / squares : 0.0f;
  // The square of subnormals may vanish although the values do not.
  const bool usable = std::isfinite(factor);
  for (int i = 0; i < n; ++i) {
    weights[i] = usable ? 1.0f + factor * x[i] * x[i] : 1.0f;
  }
}

// --- Level sets of symmetric types
// ----------------------------------------------

// The integers low..high.
template <int low, int high>
struct LinearLevels {
  static constexpr float kLow = low;
  static float Nearest(float value) {
    return RoundToInteger(std::min(std::max(value, static_cast<float>(low)),
                                   static_cast<float>(high)));
  }
};

// The IQ4 codebook. Midpoints between neighbours are multiples of 1/2, so the
// cell of floor(2 * value) lies in one level's range.
struct CodebookLevels {
  static constexpr float kLow = kIQ4Codebook[0];
  static int NearestIndex(float value) {
    const float limited = std::min(std::max(value, -128.0f), 127.0f);
    return Table().index[static_cast<int>(2.0f * (limited + 128.0f))];
  }
  static float Nearest(float value) {
    return kIQ4Codebook[NearestIndex(value)];
  }

 private:
  struct Cells {
    uint8_t index[512];
    Cells() {
      for (int cell = 0; cell < 512; ++cell) {
        const float value = 0.5f * static_cast<float>(cell) - 128.0f + 0.25f;
        int best = 0;
        for (int i = 1; i < 16; ++i) {
          if (std::fabs(value - kIQ4Codebook[i]) <
              std::fabs(value - kIQ4Codebook[best])) {
            best = i;
          }
        }
        index[cell] = static_cast<uint8_t>(best);
      }
    }
  };
  static const Cells& Table() {
    static const Cells cells;
    return cells;
  }
};

// Starting scales: the largest value at `from` ... `to` times the lowest level
// in `steps` steps. Above 1 the largest value is clipped.
struct Starts {
  float from;
  float to;
  int steps;
  bool both_signs;  // the level sets are lopsided: try either end for the
                    // extreme
};

// --- Symmetric groups
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

// Squared error of storing nothing but zeros. Scales below float16 may do no
// better.
inline float ZeroError(const float* x, const float* w) {
  float error[kLanes] = {};
  for (int i = 0; i < kSuperBlockSize; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) error[l] += w[i + l] * x[i + l] * x[i + l];
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

// --- Groups with a minimum
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

}  // namespace quantize
}  // namespace weft
