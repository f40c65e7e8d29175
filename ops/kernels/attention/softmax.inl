// Online softmax of one tile of rows and one page, in three steps: the rows'
// new maxima, weights relative to them, and what outputs and sums so far must
// be multiplied by. All are powers of two of scale * score, the scale with
// log2(e) in it, since powers of two are the cheaper exponential.
//
// Products of a size that a float rounds by whole units, or that overflow it,
// would be off from the maximum's by as much, and all weights could become 0 or
// infinite. So from kLargeMaximum on scores are subtracted before they are
// multiplied: the largest weight is exactly 1. What a float cannot hold as a
// score, scaled or not, is infinite here.
//
// A row's maximum and the 16 partial sums of its weights depend on its scores
// alone, and every step takes lanes as IEEE 754 says: the same bits on every
// instruction set.
#pragma once

#include "ops/kernels/attention/tiles.inl"
#include "ops/kernels/kv_layout.h"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

constexpr int kPageVectors = kPageTokens / 16;
constexpr float kLog2E = 1.44269504088896341f;

// Keys of a page that the rows of a tile see: row r those from from[r] to to[r]
// - 1, all rows those from first to last - 1; perhaps none.
struct Visible {
  int first, last;
  bool any;  // whether some row sees some
  int from[kMostTileRows], to[kMostTileRows];

  bool Whole() const { return first == 0 && last == kPageTokens; }
};
constexpr Visible kWholePage = {
    0,
    kPageTokens,
    true,
    {},
    {kPageTokens, kPageTokens, kPageTokens, kPageTokens, kPageTokens,
     kPageTokens, kPageTokens, kPageTokens}};

// The maximum of a row that has seen nothing: below all scores, and 2^(it - it)
// is 1, where two infinities would give NaN.
constexpr float kNoMaximum = -3.4028234663852886e38f;

constexpr float kLargeMaximum = 131072.0f;
WEFT_INLINE bool IsLarge(float scaled_maximum) {
  return !(__builtin_fabsf(scaled_maximum) < kLargeMaximum);
}

// Scores [rows][64] become cap * tanh(scale * score / cap).
WEFT_INLINE void CapScores(float* scores, int rows, float scale, float cap) {
  const F32x16 inner = Splat(scale / cap);
  for (int i = 0; i < rows * kPageTokens; i += 16) {
    Store(scores + i, Splat(cap) * Tanh(Load(scores + i) * inner));
  }
}

// 2^x within 2 ulp, for x <= 0: a polynomial in x - n, |x - n| <= 1/2, times
// 2^n. The polynomial, exact at 0, has the least relative error of its degree
// (9e-8), found by iteration. 0 below -126 (no subnormal results), NaN for NaN.
WEFT_INLINE F32x16 Exp2(F32x16 x) {
  const I32x16 tiny = Less(x, Splat(-126.0f));
  const F32x16 bounded = Select(tiny, F32x16{}, x);
  // The integer in the low bits of the sum, as in RoundToInt.
  const F32x16 magic = Splat(12582912.0f);
  const F32x16 sum = bounded + magic;
  const F32x16 r = bounded - (sum - magic);
  F32x16 p = Splat(0.001326459966619499f);
  p = MultiplyAdd(p, r, Splat(0.009671511030621308f));
  p = MultiplyAdd(p, r, Splat(0.05550734042162351f));
  p = MultiplyAdd(p, r, Splat(0.24022242134775817f));
  p = MultiplyAdd(p, r, Splat(0.693146977506009f));
  p = MultiplyAdd(p, r, Splat(1.0f));
  const I32x16 exponent = (BitsOf(sum) + 127) << 23;
  return Select(tiny, F32x16{}, p * FloatsOf(exponent));
}

// Scores [rows][64] that a row may not see become -infinity. updated[r] =
// max(maximum[r], the largest score).
WEFT_INLINE void TileMaxima(float* scores, int rows, const Visible& visible,
                            const float* maximum, float* updated) {
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const F32x16 masked = Splat(-__builtin_inff());
  for (int r = 0; r < rows; ++r, scores += kPageTokens) {
    F32x16 s[kPageVectors];
    for (int v = 0; v < kPageVectors; ++v) {
      s[v] = Load(scores + 16 * v);
      if (!visible.Whole()) {
        const I32x16 seen = (lane < visible.to[r] - 16 * v) &
                            ~(lane < visible.from[r] - 16 * v);
        s[v] = Select(seen, s[v], masked);
        Store(scores + 16 * v, s[v]);
      }
    }
    const float largest = ReduceMax(Max(Max(s[0], s[1]), Max(s[2], s[3])));
    updated[r] = largest > maximum[r] ? largest : maximum[r];
  }
}

// Scores to weights, in place. added[r][16] are partial sums of a row.
WEFT_INLINE void TileWeights(float* scores, int rows, float scale,
                             const float* updated, float* added) {
  for (int r = 0; r < rows; ++r, scores += kPageTokens) {
    const float maximum = scale * updated[r];
    F32x16 p[kPageVectors];
    if (IsLarge(maximum)) {
      for (int v = 0; v < kPageVectors; ++v) {
        p[v] = Exp2((Load(scores + 16 * v) - Splat(updated[r])) * Splat(scale));
      }
    } else {
      for (int v = 0; v < kPageVectors; ++v) {
        p[v] = Exp2(
            MultiplyAdd(Load(scores + 16 * v), Splat(scale), Splat(-maximum)));
      }
    }
    for (int v = 0; v < kPageVectors; ++v) Store(scores + 16 * v, p[v]);
    Store(added + 16 * r, (p[0] + p[1]) + (p[2] + p[3]));
  }
}

// 2^(scale * (before - after)): what is relative to one maximum made relative
// to another, which is not less. Exp2(0) is exactly 1.
WEFT_INLINE F32x16 FactorTo(F32x16 before, F32x16 after, F32x16 scale) {
  const F32x16 scaled = after * scale;
  return Exp2(Select(Less(Absolute(scaled), Splat(kLargeMaximum)),
                     before * scale - scaled, (before - after) * scale));
}

// Takes over the new maxima and adds to the sums [rows][16]; factor[r] is what
// outputs so far must be multiplied by. All arrays of maxima and factors can be
// read up to 16 lanes.
WEFT_INLINE void TileFactors(int rows, float scale, const float* updated,
                             const float* added, float* maximum, float* sum,
                             float* factor) {
  Store(factor, FactorTo(Load(maximum), Load(updated), Splat(scale)));
  for (int r = 0; r < rows; ++r) {
    maximum[r] = updated[r];
    Store(sum + 16 * r, MultiplyAdd(Load(sum + 16 * r), Splat(factor[r]),
                                    Load(added + 16 * r)));
  }
}

}  // namespace
}  // namespace weft
