// The search behind the codebook types (codebooks.h): which codewords, and
// which scale, lose least.
//
// For a fixed scale each run of 8 (or 4) elements is a point, and its codeword
// the nearest of the codebook by weighted distance. Rounding every element to
// the nearest digit gives a string of digits; for each string the codewords
// around it are listed once, and only these are compared. For fixed codewords
// the scale is a least-squares quotient. As in fit.h, both are tried from a
// range of starting scales and then alternated.
//
// Where seven signs stand for eight elements and the eighth comes out wrong,
// the element whose other sign costs least gets it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ops/formats/fit.h"
#include "ops/formats/format.h"

namespace weft {
namespace quantize {
namespace {

// The codewords of one codebook as points, and those near each string of
// digits.
template <class Codebook>
class Codewords {
 public:
  static constexpr int kRun = Codebook::kRun;
  static constexpr int kCount = 1 << Codebook::kIndexBits;
  static constexpr int kNear = kRun == 8 ? 16 : 8;

  static const Codewords& Get() {
    static const Codewords* const codewords = new Codewords;
    return *codewords;
  }

  // Of the levels with the sign (variant 1) or without.
  const float* Point(int variant, int index) const {
    return &points_[static_cast<size_t>((variant * kCount + index) * kRun)];
  }

  // The nearest codeword to `v`, in units of levels, and its squared distance.
  int Nearest(const float* v, const float* w, int variant,
              float* distance) const {
    int string = 0;
    for (int i = kRun; i-- > 0;) {
      int digit = 0;
      while (digit + 1 < Codebook::kDigits && v[i] > middles_[variant][digit]) {
        ++digit;
      }
      string = string * Codebook::kDigits + digit;
    }
    const uint16_t* near = &near_[static_cast<size_t>(string * kNear)];
    int best = 0;
    *distance = INFINITY;
    for (int k = 0; k < kNear; ++k) {
      const float* point = Point(variant, near[k]);
      float sum = 0.0f;
      for (int i = 0; i < kRun; ++i) {
        const float rest = v[i] - point[i];
        sum += w[i] * rest * rest;
      }
      if (sum < *distance) {
        *distance = sum;
        best = near[k];
      }
    }
    return best;
  }

 private:
  Codewords() : points_(2 * kCount * kRun), near_(Strings() * kNear) {
    const uint32_t* words = Codebook::Words();
    for (int variant = 0; variant < 2; ++variant) {
      const int8_t* levels = Codebook::kValues + 8 * variant;
      for (int digit = 0; digit + 1 < Codebook::kDigits; ++digit) {
        middles_[variant][digit] = 0.5f * (levels[digit] + levels[digit + 1]);
      }
      for (int c = 0; c < kCount; ++c) {
        for (int i = 0; i < kRun; ++i) {
          const int digit = words[c] >> (8 * (i % 4) + i / 4 * 4) & 7;
          points_[static_cast<size_t>((variant * kCount + c) * kRun + i)] =
              levels[digit];
        }
      }
    }
    std::vector<std::pair<float, int>> distances(kCount);
    for (size_t string = 0; string < Strings(); ++string) {
      float at[kRun];
      size_t rest = string;
      for (float& level : at) {
        level = Codebook::kValues[rest % Codebook::kDigits];
        rest /= Codebook::kDigits;
      }
      for (int c = 0; c < kCount; ++c) {
        float distance = 0.0f;
        for (int i = 0; i < kRun; ++i) {
          const float step = at[i] - Point(0, c)[i];
          distance += step * step;
        }
        distances[static_cast<size_t>(c)] = {distance, c};
      }
      std::nth_element(distances.begin(), distances.begin() + kNear,
                       distances.end());
      std::sort(distances.begin(), distances.begin() + kNear);
      for (int k = 0; k < kNear; ++k) {
        near_[string * kNear + static_cast<size_t>(k)] =
            static_cast<uint16_t>(distances[static_cast<size_t>(k)].second);
      }
    }
  }

  static constexpr size_t Strings() {
    size_t strings = 1;
    for (int i = 0; i < kRun; ++i) strings *= Codebook::kDigits;
    return strings;
  }

  float middles_[2][8];
  std::vector<float> points_;
  std::vector<uint16_t> near_;
};

// What a group of elements with one scale is stored as.
struct GridGroup {
  uint16_t index[8];
  uint32_t signs;
  // Weighted sums of x * level and level * level.
  float product, square;
};

// Magnitudes of n elements in units of levels, and their signs. Of every eight
// signs that must be even in number an odd one is changed where that costs
// least: what is left of that element is less than nothing.
template <class Codebook, int n>
uint32_t SplitSigns(const float* x, const float* w, float inverse, float* v) {
  constexpr float lowest = Codebook::kValues[0];
  uint32_t signs = 0;
  for (int i = 0; i < n; ++i) {
    v[i] = std::fabs(x[i]) * inverse;
    if (x[i] < 0.0f) signs |= 1u << i;
  }
  if (!Codebook::kSevenSigns) return signs;
  for (int first = 0; first < n; first += 8) {
    if (__builtin_parity(signs >> first & 255) == 0) continue;
    int cheapest = first;
    float least = INFINITY;
    for (int i = first; i < first + 8; ++i) {
      const float far = v[i] + lowest, near = std::max(lowest - v[i], 0.0f);
      const float cost = w[i] * (far * far - near * near);
      if (cost < least) {
        least = cost;
        cheapest = i;
      }
    }
    signs ^= 1u << cheapest;
    v[cheapest] = -v[cheapest];
  }
  return signs;
}

// The best codewords of n elements for a given scale. one_shift: all runs have
// the same "sign".
template <class Codebook, int n, bool one_shift>
GridGroup FindCodewords(const float* x, const float* w, float inverse) {
  constexpr int run = Codebook::kRun;
  const Codewords<Codebook>& codewords = Codewords<Codebook>::Get();
  GridGroup group = {};
  float v[n];
  if constexpr (Codebook::kHasSigns) {
    group.signs = SplitSigns<Codebook, n>(x, w, inverse, v);
    for (int r = 0; r < n / run; ++r) {
      float distance;
      const int index =
          codewords.Nearest(v + run * r, w + run * r, 0, &distance);
      group.index[r] = static_cast<uint16_t>(index);
      const float* point = codewords.Point(0, index);
      for (int i = run * r; i < run * r + run; ++i) {
        const float size = (group.signs >> i & 1) != 0 ? -x[i] : x[i];
        const float level = point[i - run * r];
        group.product += w[i] * size * level;
        group.square += w[i] * level * level;
      }
    }
    return group;
  }
  for (int i = 0; i < n; ++i) v[i] = x[i] * inverse;
  int index[2][n / run];
  float distance[2][n / run], total[2] = {};
  for (int variant = 0; variant < 2; ++variant) {
    for (int r = 0; r < n / run; ++r) {
      index[variant][r] = codewords.Nearest(v + run * r, w + run * r, variant,
                                            &distance[variant][r]);
      total[variant] += distance[variant][r];
    }
  }
  for (int r = 0; r < n / run; ++r) {
    const int variant =
        (one_shift ? total[1] < total[0] : distance[1][r] < distance[0][r]) ? 1
                                                                            : 0;
    group.index[r] = static_cast<uint16_t>(index[variant][r]);
    if (variant == 1) group.signs |= ((1u << run) - 1) << (run * r);
    const float* point = codewords.Point(variant, index[variant][r]);
    for (int i = run * r; i < run * r + run; ++i) {
      const float level = point[i - run * r];
      group.product += w[i] * x[i] * level;
      group.square += w[i] * level * level;
    }
  }
  return group;
}

// The best scale of n elements alone; 0 when all are 0.
template <class Codebook, int n, bool one_shift>
float FitGridScale(const float* x, const float* w) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  if (largest < 1e-30f) return 0.0f;
  constexpr float top = Codebook::kValues[Codebook::kDigits - 1];
  constexpr float from = Codebook::kHasSigns ? 0.6f : 0.8f;
  constexpr float to = Codebook::kHasSigns ? 1.2f : 2.6f;
  constexpr int steps = 8;
  float best_scale = 0.0f, best_gain = 0.0f;
  const auto consider = [&](float inverse) {
    const GridGroup group =
        FindCodewords<Codebook, n, one_shift>(x, w, inverse);
    if (!(group.square > 0.0f) || !(group.product > 0.0f)) return false;
    const float gain = group.product / group.square * group.product;
    if (!(gain > best_gain)) return false;
    best_gain = gain;
    best_scale = group.product / group.square;
    return true;
  };
  for (int step = 0; step <= steps; ++step) {
    consider((from + (to - from) * step / steps) * top / largest);
  }
  // Of magnitudes that are all alike some codebooks have only the least.
  if (Codebook::kHasSigns) consider(Codebook::kValues[0] / largest);
  for (int round = 0; round < 4 && best_scale > 0.0f; ++round) {
    if (!consider(1.0f / best_scale)) break;
  }
  return best_scale;
}

struct GridSuperBlock {
  uint16_t d;
  uint8_t scales[16];  // per group
  uint16_t index[64];
  uint32_t signs[8];  // per 32 elements
};

// A super-block of groups of `group` elements: level * d * unit * (2s + 1).
template <class Codebook, int group, bool one_shift>
GridSuperBlock FitGridSuperBlock(const float* x, const float* w) {
  constexpr int groups = kSuperBlockSize / group;
  constexpr int most = Codebook::kScales - 1;
  constexpr int codewords = group / Codebook::kRun;
  GridSuperBlock best = {};
  float ideal[groups];
  float largest = 0.0f;
  for (int g = 0; g < groups; ++g) {
    ideal[g] =
        FitGridScale<Codebook, group, one_shift>(x + group * g, w + group * g);
    largest = std::max(largest, ideal[g]);
  }
  if (largest == 0.0f) return best;
  float d = RoundToF16(largest / (Codebook::kUnit * (2 * most + 1)));
  float best_error = ZeroError(x, w);  // that of `best`, all zeros
  for (int round = 0; round < 3 && d > 0.0f; ++round) {
    GridSuperBlock block = {};
    block.d = ToStoredF16(d);
    const float unit = d * Codebook::kUnit;
    double error = 0.0, product = 0.0, square = 0.0;
    for (int g = 0; g < groups; ++g) {
      const float* gx = x + group * g;
      const float* gw = w + group * g;
      double all = 0.0;
      for (int i = 0; i < group; ++i) all += double{gw[i]} * gx[i] * gx[i];
      const int middle = static_cast<int>(RoundToInteger(
          std::min(0.5f * (ideal[g] / unit - 1.0f), most + 1.0f)));
      double least = INFINITY;
      GridGroup chosen = {};
      int scale = 0;
      for (int s = std::max(middle - 1, 0); s <= std::min(middle + 1, most);
           ++s) {
        const float tried = unit * (2 * s + 1);
        const GridGroup found =
            FindCodewords<Codebook, group, one_shift>(gx, gw, 1.0f / tried);
        const double rest =
            all + tried * (double{tried} * found.square - 2.0 * found.product);
        if (rest < least) {
          least = rest;
          chosen = found;
          scale = s;
        }
      }
      error += least;
      const double factor = Codebook::kUnit * (2 * scale + 1);
      product += factor * chosen.product;
      square += factor * factor * chosen.square;
      block.scales[g] = static_cast<uint8_t>(scale);
      std::memcpy(block.index + codewords * g, chosen.index, 2 * codewords);
      block.signs[group * g / 32] |= chosen.signs << (group * g % 32);
    }
    if (!(error < best_error)) break;
    best_error = static_cast<float>(error);
    best = block;
    d = square > 0.0 ? RoundToF16(static_cast<float>(product / square)) : 0.0f;
  }
  return best;
}

}  // namespace
}  // namespace quantize
}  // namespace weft
