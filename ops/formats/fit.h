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
// fit_scale.h and fit_line.h do this for types without and with a minimum; here
// is what they share.
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

#include "ops/formats/format.h"

namespace weft {
namespace quantize {
namespace {

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

// Where the importance of element i stands, if it is known.
inline const float* At(const float* importance, int64_t i) {
  return importance == nullptr ? nullptr : importance + i;
}

// The importance, relative to its mean; where all of it is zero, or where it is
// not known, the weights above.
template <int n>
void FillWeights(const float* x, const float* importance, float* weights) {
  if (importance != nullptr) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += importance[i];
    if (sum > 0.0) {
      // Some weight for all: no sum of weights may vanish.
      for (int i = 0; i < n; ++i) {
        weights[i] = static_cast<float>(importance[i] * (n / sum)) + 1e-6f;
      }
      return;
    }
  }
  float squares = 0.0f;
  for (int i = 0; i < n; ++i) squares += x[i] * x[i];
  const float factor = squares > 0.0f ? kEmphasis * n / squares : 0.0f;
  // The square of subnormals may vanish although the values do not.
  const bool usable = std::isfinite(factor);
  for (int i = 0; i < n; ++i) {
    weights[i] = usable ? 1.0f + factor * x[i] * x[i] : 1.0f;
  }
}

// The importance alone, or the same for all.
template <int n>
void FillErrorWeights(const float* importance, float* weights) {
  for (int i = 0; i < n; ++i) {
    weights[i] = importance == nullptr ? 1.0f : importance[i] + 1e-30f;
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

// Starting scales: the largest value at `from` ... `to` times the lowest level
// in `steps` steps. Above 1 the largest value is clipped.
struct Starts {
  float from;
  float to;
  int steps;
  bool both_signs;  // the level sets are lopsided: try either end for the
                    // extreme
};

// Squared error of storing nothing but zeros. Scales below float16 may do no
// better.
inline float ZeroError(const float* x, const float* w) {
  float error[kLanes] = {};
  for (int i = 0; i < kSuperBlockSize; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) error[l] += w[i + l] * x[i + l] * x[i + l];
  }
  return LaneSum(error);
}

}  // namespace
}  // namespace quantize
}  // namespace weft
