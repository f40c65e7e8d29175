// Attention on a BF16 cache with vdpbf16ps: queries and the weights of the
// softmax are rounded to bfloat16, sums and the softmax stay in f32. Twice the
// rate of the kernels that widen, at the precision of the cache itself.
//
// One instruction adds the products of a pair: of two dimensions of a key, of
// two keys' values. Each score is one chain of them over the pairs of
// dimensions, each output one over the pairs of keys, as attention.h has it; so
// a row's bits do not depend on its company, but differ from those of the other
// instruction sets. Of a pair whose second key the row may not see, the value
// is taken as 0; of one whose first key is before its window, the weight is 0.

#if defined(__x86_64__)

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/fused.inl"
#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"

namespace weft {
namespace {

constexpr int kPagePairs = kPageTokens / 2;

WEFT_INLINE __m512bh SplatPair(const uint32_t* pair) {
  int bits;
  memcpy(&bits, pair, sizeof(bits));
  return (__m512bh)_mm512_set1_epi32(bits);
}

// scores[r][j] = sum over pairs of q[pair][r] . key[pair][j], for R rows and 16
// V keys; `head` and `next` as in KeyTile.
template <int R, int V>
__attribute__((noinline)) void KeyPairsTile(const uint32_t* q,
                                            const uint8_t* head,
                                            const uint8_t* next, int64_t pairs,
                                            float* scores) {
  __m512 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m512bh key[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      key[v] = (__m512bh)_mm512_loadu_si512(head + 64 * v);
    }
    Prefetch<64 * V>(next);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512bh query = SplatPair(q + r);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], query, key[v]);
      }
    }
    q += R;
    head += kPageTokens * 4;
    next += kPageTokens * 4;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      _mm512_store_ps(scores + r * kPageTokens + v * 16, sum[r][v]);
    }
  }
}

// Pairs [begin, end) of a page, and the first key of one more.
struct PairRange {
  int begin, end;
  bool half;
};

// out[r][i] = out[r][i] * factor[r] + sum over pairs of p[r][pair] .
// value[pair][i] for 16 V dimensions; rows of weights are kPageTokens apart.
template <int R, int V>
__attribute__((noinline)) void ValuePairsTile(
    const uint32_t* p, const uint8_t* data, const uint8_t* next,
    int64_t row_bytes, PairRange range, const float* factor, float* out,
    int64_t out_stride) {
  __m512 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sum[r][v] = _mm512_mul_ps(_mm512_loadu_ps(out + r * out_stride + v * 16),
                                _mm512_set1_ps(factor[r]));
    }
  }
  data += range.begin * row_bytes;
  next += range.begin * row_bytes;
  for (int pair = range.begin; pair < range.end; ++pair) {
    __m512bh value[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      value[v] = (__m512bh)_mm512_loadu_si512(data + 64 * v);
    }
    Prefetch<64 * V>(next);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512bh weight = SplatPair(p + r * kPageTokens + pair);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], weight, value[v]);
      }
    }
    data += row_bytes;
    next += row_bytes;
  }
  if (range.half) {
    const __m512i first = _mm512_set1_epi32(0xffff);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512bh weight = SplatPair(p + r * kPageTokens + range.end);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const __m512i both = _mm512_loadu_si512(data + 64 * v);
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], weight,
                                     (__m512bh)_mm512_and_si512(both, first));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      _mm512_storeu_ps(out + r * out_stride + v * 16, sum[r][v]);
    }
  }
}

// Run-time number of rows to a tile of that many.
template <int R = kMostTileRows>
WEFT_INLINE void KeyPairsTiles(int rows, const uint32_t* q, const uint8_t* head,
                               const uint8_t* next, int64_t pairs,
                               float* scores) {
  if (rows == R) {
    constexpr int V = VectorsOfRows(R);
    for (int v = 0; v < kPageVectors; v += V) {
      KeyPairsTile<R, V>(q, head + v * 64, next + v * 64, pairs,
                         scores + v * 16);
    }
  } else if constexpr (R > 1) {
    KeyPairsTiles<R - 1>(rows, q, head, next, pairs, scores);
  }
}

template <int R, int V = VectorsOfRows(R)>
WEFT_INLINE void ValuePairsVectors(int vectors, const uint32_t* p,
                                   const ValuePage& page, PairRange range,
                                   const float* factor, float* out,
                                   int64_t out_stride, int first = 0) {
  for (; first + V <= vectors; first += V) {
    ValuePairsTile<R, V>(p, page.data + first * 64, page.next + first * 64,
                         page.row_bytes, range, factor, out + first * 16,
                         out_stride);
  }
  if constexpr (V > 1) {
    if (first < vectors) {
      ValuePairsVectors<R, V - 1>(vectors, p, page, range, factor, out,
                                  out_stride, first);
    }
  }
}

template <int R = kMostTileRows>
WEFT_INLINE void ValuePairsTiles(int rows, int vectors, const uint32_t* p,
                                 const ValuePage& page, PairRange range,
                                 const float* factor, float* out,
                                 int64_t out_stride) {
  if (rows == R) {
    ValuePairsVectors<R>(vectors, p, page, range, factor, out, out_stride);
  } else if constexpr (R > 1) {
    ValuePairsTiles<R - 1>(rows, vectors, p, page, range, factor, out,
                           out_stride);
  }
}

// 2^x for x <= 0 within 1.1e-4, far below bfloat16's own rounding: a polynomial
// of degree 3 in x - n, exact at 0. 0 below -150, NaN for NaN.
WEFT_INLINE __m512 CoarseExp2(__m512 x) {
  // The second operand where one is NaN.
  const __m512 bounded = _mm512_max_ps(_mm512_set1_ps(-160.0f), x);
  const __m512 n = _mm512_roundscale_ps(bounded, 0);
  const __m512 r = _mm512_sub_ps(bounded, n);
  __m512 p = _mm512_set1_ps(0.05500828365917051f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.2422110536008863f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.6932830071036712f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

// Products of rounded pairs: see FusedRun.
class PairProducts {
 public:
  static void PackQueries(const Run& run) {
    const AttentionArgs& args = *run.args;
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int64_t rows = TileBegin(run, tile + 1) - begin;
      uint32_t* packed = Queries(run, begin);
      for (int64_t r = 0; r < rows; ++r) {
        const float* q = QueryOf(run, begin + r);
        const F32x16 factor = Splat(Temperature(run, begin + r));
        for (int64_t d = 0; d < args.key_dim; d += 32) {
          const int64_t left = args.key_dim - d;
          const F32x16 low = LoadPart(q + d, left < 16 ? left : 16) * factor;
          const F32x16 high =
              left > 16
                  ? LoadPart(q + d + 16, left < 32 ? left - 16 : 16) * factor
                  : F32x16{};
          uint32_t pairs[16];
          _mm512_storeu_si512(pairs, (__m512i)_mm512_cvtne2ps_pbh(high, low));
          for (int64_t i = 0; 2 * i < left && i < 16; ++i) {
            packed[(d / 2 + i) * rows + r] = pairs[i];
          }
        }
      }
    }
  }

  PairProducts(const Run& run, int64_t page) : run_(run) {
    const int64_t following = page + 1 < run.pages ? page + 1 : page;
    const AttentionArgs& args = *run.args;
    keys_ = PageHead<KvType::kBF16>(run, *args.keys, page, args.key_dim);
    next_keys_ =
        PageHead<KvType::kBF16>(run, *args.keys, following, args.key_dim);
    const int64_t dims = args.value_dim;
    if (args.values_are_keys) {
      TransposePairs(page);
      return;
    }
    values_.data = PageHead<KvType::kBF16>(run, *args.values, page, dims);
    values_.next = PageHead<KvType::kBF16>(run, *args.values, following, dims);
    values_.row_bytes = dims * 4;
    if (dims % 16 == 0) return;
    // To full vectors: reading past a head could leave the cache.
    uint8_t* padded = Padded();
    const int64_t stride = run.vectors * 64;
    for (int64_t pair = 0; pair < kPagePairs; ++pair) {
      memset(padded + pair * stride, 0, static_cast<size_t>(stride));
      memcpy(padded + pair * stride, values_.data + pair * dims * 4,
             static_cast<size_t>(dims) * 4);
    }
    values_.data = values_.next = padded;
    values_.row_bytes = stride;
  }

  void Scores(int64_t begin, int rows, float* scores) const {
    KeyPairsTiles(rows, Queries(run_, begin), keys_, next_keys_, PairsOf(run_),
                  scores);
  }

  // A row's pairs of weights replace the first half of its scores.
  static void Weights(float* scores, int rows, float scale,
                      const float* updated, float* added) {
    for (int r = 0; r < rows; ++r, scores += kPageTokens) {
      const float scaled = scale * updated[r];
      __m512 p[kPageVectors];
      if (IsLarge(scaled)) {
        for (int v = 0; v < kPageVectors; ++v) {
          const __m512 below = _mm512_sub_ps(_mm512_load_ps(scores + 16 * v),
                                             _mm512_set1_ps(updated[r]));
          p[v] = CoarseExp2(_mm512_mul_ps(below, _mm512_set1_ps(scale)));
        }
      } else {
        const __m512 maximum = _mm512_set1_ps(scaled);
        for (int v = 0; v < kPageVectors; ++v) {
          p[v] = CoarseExp2(_mm512_fmsub_ps(_mm512_load_ps(scores + 16 * v),
                                            _mm512_set1_ps(scale), maximum));
        }
      }
      _mm512_store_si512(scores, (__m512i)_mm512_cvtne2ps_pbh(p[1], p[0]));
      _mm512_store_si512(scores + 16, (__m512i)_mm512_cvtne2ps_pbh(p[3], p[2]));
      Store(added + 16 * r, (p[0] + p[1]) + (p[2] + p[3]));
    }
  }

  // Pairs that all rows see go through one tile, the others row by row.
  void Outputs(int64_t begin, int rows, const Visible& visible,
               const float* weights, const float* factor) const {
    const uint32_t* p = reinterpret_cast<const uint32_t*>(weights);
    const int64_t stride = run_.vectors * 16;
    const int vectors = static_cast<int>(run_.vectors);
    float* out = run_.out + begin * stride;
    const auto tile = [&](int first, int last, const float* factors) {
      ValuePairsTiles(rows, vectors, p, values_, {first / 2, last / 2, false},
                      factors, out, stride);
    };
    const auto one_row = [&](int r, int from, int to, const float* factors) {
      ValuePairsVectors<1>(vectors, p + r * kPageTokens, values_,
                           {from / 2, to / 2, to % 2 != 0}, factors,
                           out + r * stride, stride);
    };
    // Whole pairs; a row that begins in the middle of one takes all of it.
    Visible pairs = visible;
    pairs.first = (visible.first + 1) / 2 * 2;
    pairs.last = visible.last / 2 * 2;
    AccumulateInOrder(rows, pairs, factor, tile, one_row);
  }

 private:
  uint8_t* Padded() const { return reinterpret_cast<uint8_t*>(run_.widened); }

  // Values that are keys: pairs of dimensions of a position become pairs of
  // positions of a dimension.
  void TransposePairs(int64_t page) {
    const AttentionArgs& args = *run_.args;
    const uint8_t* head =
        PageHead<KvType::kBF16>(run_, *args.values, page, args.key_dim);
    const int64_t pairs = (args.value_dim + 1) / 2;
    const int64_t stride = run_.vectors * 64;
    const int keys = KeyAt(run_.last + 1, page);
    const __m512i low = _mm512_set1_epi32(0xffff);
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                            5, 21, 6, 22, 7, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    for (int64_t d = 0; d < pairs; d += 16) {
      for (int key = 0; key < keys; key += 16) {
        Native block[16];
        for (int i = 0; i < 16; ++i) {
          block[i] = d + i < pairs
                         ? NativeLoad(reinterpret_cast<const float*>(
                               head + ((d + i) * kPageTokens + key) * 4))
                         : NativeZero();
        }
        NativeTranspose(block);
        for (int i = 0; i < 16; i += 2) {
          const __m512i a = _mm512_castps_si512(block[i]);
          const __m512i b = _mm512_castps_si512(block[i + 1]);
          const __m512i even = _mm512_or_si512(_mm512_and_si512(a, low),
                                               _mm512_slli_epi32(b, 16));
          const __m512i odd = _mm512_or_si512(_mm512_srli_epi32(a, 16),
                                              _mm512_andnot_si512(low, b));
          uint8_t* to = Padded() + (key + i) / 2 * stride + d * 8;
          _mm512_storeu_si512(to, _mm512_permutex2var_epi32(even, first, odd));
          if (d / 8 + 1 < run_.vectors) {
            _mm512_storeu_si512(to + 64,
                                _mm512_permutex2var_epi32(even, second, odd));
          }
        }
      }
    }
    values_.data = values_.next = Padded();
    values_.row_bytes = stride;
  }

  static int64_t PairsOf(const Run& run) { return (run.args->key_dim + 1) / 2; }
  static uint32_t* Queries(const Run& run, int64_t begin) {
    return reinterpret_cast<uint32_t*>(run.q) + begin * PairsOf(run);
  }

  const Run& run_;
  const uint8_t* keys_;
  const uint8_t* next_keys_;
  ValuePage values_;
};

void AttentionPairs(const AttentionArgs& args, int64_t begin, int64_t end,
                    uint8_t* thread_scratch) {
  ForRuns(args, begin, end, thread_scratch, FusedRun<PairProducts>);
}

constexpr AttentionKernel kFusedKernels[] = {
    {"attention", KvType::kBF16, AttentionPairs, CombinePieces},
};

}  // namespace

const AttentionKernels kAttentionKernelsAvx512Bf16 = {
    .fused = ListOf(kFusedKernels), .scores = {}, .values = {}};

}  // namespace weft

#endif  // __x86_64__
