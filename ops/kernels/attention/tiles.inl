// The two inner products of attention, as register tiles: R query rows times
// 16 * V keys or value dimensions. See attention.h for the order of summation.
//
// Not inlined, so that the accumulators stay in registers (kernels.md of the
// design: GCC spills them otherwise).
#pragma once

#include "ops/kernels/kv_layout.h"
#include "ops/kernels/vector.h"
#include "ops/kernels/vector16.h"

namespace weft {
namespace {

#if defined(__AVX512F__)
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
#else
constexpr int kTileRows = 3;
constexpr int kTileVectors = 2;
#endif

constexpr int kPageVectors = kPageTokens / 16;

template <KvType kType>
WEFT_INLINE F32x16 LoadElements(const uint8_t* p) {
  if (kType == KvType::kF32) {
    return Load(reinterpret_cast<const float*>(p));
  } else if (kType == KvType::kQ8_0) {
    I8x16 q;
    memcpy(&q, p, sizeof(q));
    return ToFloat(__builtin_convertvector(q, I32x16));
  } else {
    const U16x16 v = Load16(reinterpret_cast<const uint16_t*>(p));
    return kType == KvType::kF16 ? WidenF16(v) : WidenBF16(v);
  }
}

template <KvType kType>
constexpr int kElementBytes = kType == KvType::kF32    ? 4
                              : kType == KvType::kQ8_0 ? 1
                                                       : 2;

// Prefetches the place in the next page that this one's loads have reached.
template <int kBytes>
WEFT_INLINE void Prefetch(const uint8_t* p) {
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// scores[r][j] = scale * sum over d of q[d][r] * key[d][j], for the tile's rows
// and 16 * V keys. `head` and `next` are this head in this page and the next;
// queries are packed [dims][R].
template <KvType kType, int R, int V>
__attribute__((noinline)) void KeyTile(const float* q, const uint8_t* head,
                                       const uint8_t* next, int64_t dims,
                                       int first_vector, float scale,
                                       float* scores) {
  constexpr int kRowBytes = kPageTokens * kElementBytes<kType>;
  constexpr bool kScaled = kType == KvType::kQ8_0;
  F32x16 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[r][v] = F32x16{};
  }
  const uint8_t* k = head + first_vector * 16 * kElementBytes<kType>;
  const uint8_t* n = next + first_vector * 16 * kElementBytes<kType>;
  const uint16_t* block_scales =
      reinterpret_cast<const uint16_t*>(head + dims * kRowBytes) +
      first_vector * 16;
  float key_scales[kScaled ? 16 * V : 1] = {};
  for (int64_t d = 0; d < dims; ++d) {
    if (kScaled && d % 32 == 0) {
      for (int v = 0; v < V; ++v) {
        Store(key_scales + 16 * v, WidenF16(Load16(block_scales + 16 * v)));
      }
      block_scales += kPageTokens;
    }
    F32x16 key[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      key[v] = LoadElements<kType>(k + v * 16 * kElementBytes<kType>);
      if (kScaled) key[v] = key[v] * Load(key_scales + 16 * v);
    }
    Prefetch<V * 16 * kElementBytes<kType>>(n);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 query = Splat(q[r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        sum[r][v] = MultiplyAdd(query, key[v], sum[r][v]);
      }
    }
    q += R;
    k += kRowBytes;
    n += kRowBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      Store(scores + r * kPageTokens + (first_vector + v) * 16,
            sum[r][v] * Splat(scale));
    }
  }
}

// Where the values of one head in one page are.
struct ValuePage {
  const uint8_t* data;
  const uint8_t* next;     // the same head in the next page, for prefetching
  const uint16_t* scales;  // kQ8_0: [keys][dims / 32]
  int64_t row_bytes;
  int64_t scales_per_row;
};

// out[r][i] = out[r][i] * factor[r] + sum over keys of p[r][key] * v[key][i]
// for keys [begin, end) and 16 * V dimensions from first_vector on.
template <KvType kType, int R, int V>
__attribute__((noinline)) void ValueTile(const float* p, const ValuePage& page,
                                         int begin, int end, int first_vector,
                                         const float* factor, float* out,
                                         int64_t out_stride) {
  constexpr bool kScaled = kType == KvType::kQ8_0;
  F32x16 sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      sum[r][v] = Load(out + r * out_stride + (first_vector + v) * 16) *
                  Splat(factor[r]);
    }
  }
  const int64_t offset =
      begin * page.row_bytes + first_vector * 16 * kElementBytes<kType>;
  const uint8_t* data = page.data + offset;
  const uint8_t* next = page.next + offset;
  const uint16_t* scales =
      kScaled ? page.scales + begin * page.scales_per_row : nullptr;
  for (int key = begin; key < end; ++key) {
    F32x16 value[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      value[v] = LoadElements<kType>(data + v * 16 * kElementBytes<kType>);
      if (kScaled) {
        value[v] = value[v] * Splat(_cvtsh_ss(scales[(first_vector + v) / 2]));
      }
    }
    Prefetch<V * 16 * kElementBytes<kType>>(next);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32x16 weight = Splat(p[r * kPageTokens + key]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        sum[r][v] = MultiplyAdd(weight, value[v], sum[r][v]);
      }
    }
    data += page.row_bytes;
    next += page.row_bytes;
    if (kScaled) scales += page.scales_per_row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      Store(out + r * out_stride + (first_vector + v) * 16, sum[r][v]);
    }
  }
}

// Run-time number of rows to a tile of that many.
template <KvType kType, int R = kTileRows>
WEFT_INLINE void KeyTiles(int rows, const float* q, const uint8_t* head,
                          const uint8_t* next, int64_t dims, float scale,
                          float* scores) {
  if (rows == R) {
    for (int v = 0; v < kPageVectors; v += kTileVectors) {
      KeyTile<kType, R, kTileVectors>(q, head, next, dims, v, scale, scores);
    }
  } else if constexpr (R > 1) {
    KeyTiles<kType, R - 1>(rows, q, head, next, dims, scale, scores);
  }
}

template <KvType kType, int R, int V = kTileVectors>
WEFT_INLINE void ValueVectors(int vectors, const float* p,
                              const ValuePage& page, int begin, int end,
                              const float* factor, float* out,
                              int64_t out_stride) {
  int first = 0;
  for (; first + V <= vectors; first += V) {
    ValueTile<kType, R, V>(p, page, begin, end, first, factor, out, out_stride);
  }
  if constexpr (V > 1) {
    if (first < vectors) {
      // Fewer than V are left: offset everything and go on with narrower tiles.
      ValuePage rest = page;
      rest.data += first * 16 * kElementBytes<kType>;
      rest.next += first * 16 * kElementBytes<kType>;
      if (kType == KvType::kQ8_0) rest.scales += first / 2;
      ValueVectors<kType, R, V - 1>(vectors - first, p, rest, begin, end,
                                    factor, out + first * 16, out_stride);
    }
  }
}

template <KvType kType, int R = kTileRows>
WEFT_INLINE void ValueTiles(int rows, int vectors, const float* p,
                            const ValuePage& page, int begin, int end,
                            const float* factor, float* out,
                            int64_t out_stride) {
  if (rows == R) {
    ValueVectors<kType, R>(vectors, p, page, begin, end, factor, out,
                           out_stride);
  } else if constexpr (R > 1) {
    ValueTiles<kType, R - 1>(rows, vectors, p, page, begin, end, factor, out,
                             out_stride);
  }
}

}  // namespace
}  // namespace weft
