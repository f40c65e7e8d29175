// The two inner products of attention, as register tiles: R query rows times
// V registers of keys or value dimensions. See attention.h for the order of
// summation.
//
// Not inlined, so that the accumulators stay in registers (kernels.md of the
// design: GCC spills them otherwise).
#pragma once

#include "ops/kernels/kv_layout.h"
#include "ops/kernels/native.h"

namespace weft {
namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTileVectors = 4;
#else
constexpr int kTileVectors = 2;
#endif
constexpr int kTileRows = 6;
// A few rows take one tile, of half as many vectors.
constexpr int kMostTileRows = 8;

constexpr int VectorsOfRows(int rows) {
  return rows <= kTileRows ? kTileVectors : kTileVectors / 2;
}

// BF16 stands in pairs: two steps of the summed dimension share a row.
template <KvType kType>
constexpr bool kPairs = kType == KvType::kBF16;

// Elements at `p` for step `i` of the summed dimension.
template <KvType kType>
WEFT_INLINE Native LoadElements(const uint8_t* p, int64_t i) {
  switch (kType) {
    case KvType::kF32:
      return NativeLoad(reinterpret_cast<const float*>(p));
    case KvType::kF16:
      return NativeWidenF16(p);
    case KvType::kBF16:
      return NativeWidenHalfPairs(p, static_cast<int>(i % 2));
    case KvType::kQ8_0:
      return NativeWidenI8(p);
  }
}

// From one lane to the next.
template <KvType kType>
constexpr int kElementBytes = KvElementBytes(kType) * (kPairs<kType> ? 2 : 1);

// What follows step `i`: its row's distance to the next step's.
template <KvType kType>
WEFT_INLINE int64_t Advance(int64_t i, int64_t row_bytes) {
  return kPairs<kType> && i % 2 == 0 ? 0 : row_bytes;
}

// Prefetches the place in the next page that this one's loads have reached.
template <int kBytes>
WEFT_INLINE void Prefetch(const uint8_t* p) {
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// scores[r][j] = scale * sum over d of q[d][r] * key[d][j], for the tile's rows
// and kLanes * V keys. `head` and `next` are this head in this page and the
// next; queries are packed [dims][R].
template <KvType kType, int R, int V>
__attribute__((noinline)) void KeyTile(const float* q, const uint8_t* head,
                                       const uint8_t* next, int64_t dims,
                                       int first_vector, float scale,
                                       float* scores) {
  constexpr int kRowBytes = kPageTokens * kElementBytes<kType>;
  constexpr bool kScaled = kType == KvType::kQ8_0;
  Native sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[r][v] = NativeZero();
  }
  const uint8_t* k = head + first_vector * kLanes * kElementBytes<kType>;
  const uint8_t* n = next + first_vector * kLanes * kElementBytes<kType>;
  const uint16_t* block_scales =
      reinterpret_cast<const uint16_t*>(head + dims * kPageTokens) +
      first_vector * kLanes;
  float key_scales[kScaled ? kLanes * V : 1] = {};
  for (int64_t d = 0; d < dims; ++d) {
    if (kScaled && d % 32 == 0) {
      for (int v = 0; v < V; ++v) {
        NativeStore(key_scales + kLanes * v,
                    NativeWidenF16(block_scales + kLanes * v));
      }
      block_scales += kPageTokens;
    }
    Native key[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      key[v] = LoadElements<kType>(k + v * kLanes * kElementBytes<kType>, d);
      if (kScaled) key[v] = key[v] * NativeLoad(key_scales + kLanes * v);
    }
    Prefetch<V * kLanes * kElementBytes<kType>>(n);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Native query = NativeSplat(q[r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        sum[r][v] = NativeMultiplyAdd(query, key[v], sum[r][v]);
      }
    }
    q += R;
    k += Advance<kType>(d, kRowBytes);
    n += Advance<kType>(d, kRowBytes);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      NativeStore(scores + r * kPageTokens + (first_vector + v) * kLanes,
                  sum[r][v] * NativeSplat(scale));
    }
  }
}

// Where the values of one head in one page are.
struct ValuePage {
  const uint8_t* data;
  const uint8_t* next;     // the same head in the next page, for prefetching
  const uint16_t* scales;  // kQ8_0: [keys][dims / 32]
  int64_t row_bytes;       // of one key, of two where they stand in pairs
  int64_t scales_per_row;
};

// out[r][i] = out[r][i] * factor[r] + sum over keys of p[r][key] * v[key][i]
// for keys [begin, end) and kLanes * V dimensions from first_vector on.
template <KvType kType, int R, int V>
__attribute__((noinline)) void ValueTile(const float* p, const ValuePage& page,
                                         int begin, int end, int first_vector,
                                         const float* factor, float* out,
                                         int64_t out_stride) {
  constexpr bool kScaled = kType == KvType::kQ8_0;
  Native sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      sum[r][v] =
          NativeLoad(out + r * out_stride + (first_vector + v) * kLanes) *
          NativeSplat(factor[r]);
    }
  }
  const int64_t offset = (kPairs<kType> ? begin / 2 : begin) * page.row_bytes +
                         first_vector * kLanes * kElementBytes<kType>;
  const uint8_t* data = page.data + offset;
  const uint8_t* next = page.next + offset;
  const uint16_t* scales =
      kScaled ? page.scales + begin * page.scales_per_row : nullptr;
  for (int key = begin; key < end; ++key) {
    Native value[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      value[v] =
          LoadElements<kType>(data + v * kLanes * kElementBytes<kType>, key);
      if (kScaled) {
        value[v] =
            value[v] *
            NativeSplat(LoadF16(scales + (first_vector + v) * kLanes / 32));
      }
    }
    Prefetch<V * kLanes * kElementBytes<kType>>(next);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Native weight = NativeSplat(p[r * kPageTokens + key]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        sum[r][v] = NativeMultiplyAdd(weight, value[v], sum[r][v]);
      }
    }
    data += Advance<kType>(key, page.row_bytes);
    next += Advance<kType>(key, page.row_bytes);
    if (kScaled) scales += page.scales_per_row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      NativeStore(out + r * out_stride + (first_vector + v) * kLanes,
                  sum[r][v]);
    }
  }
}

// Run-time number of rows to a tile of that many.
template <KvType kType, int R = kMostTileRows>
WEFT_INLINE void KeyTiles(int rows, const float* q, const uint8_t* head,
                          const uint8_t* next, int64_t dims, float scale,
                          float* scores) {
  if (rows == R) {
    constexpr int kVectors = VectorsOfRows(R);
    for (int v = 0; v < kPageTokens / kLanes; v += kVectors) {
      KeyTile<kType, R, kVectors>(q, head, next, dims, v, scale, scores);
    }
  } else if constexpr (R > 1) {
    KeyTiles<kType, R - 1>(rows, q, head, next, dims, scale, scores);
  }
}

template <KvType kType, int R, int V = VectorsOfRows(R)>
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
      rest.data += first * kLanes * kElementBytes<kType>;
      rest.next += first * kLanes * kElementBytes<kType>;
      if (kType == KvType::kQ8_0) rest.scales += first * kLanes / 32;
      ValueVectors<kType, R, V - 1>(vectors - first, p, rest, begin, end,
                                    factor, out + first * kLanes, out_stride);
    }
  }
}

template <KvType kType, int R = kMostTileRows>
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
