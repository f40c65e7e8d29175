// Writing keys and values into pages (layouts: KvState in kernel.h).
//
// A head is converted 16 values at a time into a buffer; values then go out in
// one copy, keys one by one, 64 apart, since their page is transposed. Of BF16,
// keys go in pairs and values one by one.
#pragma once

#include "ops/kernels/rows/rope.inl"
#include "ops/kernels/rows/row_access.inl"
#include "ops/kernels/vector16.h"

namespace weft {
namespace {

// Converts n <= kMaxHeadDim floats.
WEFT_INLINE void ConvertF16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const int lanes = static_cast<int>(n - i < 16 ? n - i : 16);
    Store16(out + i, NarrowF16(LoadLanes(x + i, lanes)));
  }
}

WEFT_INLINE void ConvertBF16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const int lanes = static_cast<int>(n - i < 16 ? n - i : 16);
    Store16(out + i, NarrowBF16(LoadLanes(x + i, lanes)));
  }
}

// One block of 32: scale = max|x| / 127 rounded to F16, q = round(x / scale) to
// even. A NaN or an infinity makes the scale NaN or infinite, so it is not
// lost.
WEFT_INLINE uint16_t ConvertQ8(const float* x, int8_t* out) {
  const F32x16 low = Load(x), high = Load(x + 16);
  const float largest = ReduceMax(Max(Absolute(low), Absolute(high)));
  const float poison = ReduceSum((low - low) + (high - high));
  const F32x16 scale = Splat(largest / 127.0f + poison);
  const U16x16 half = NarrowF16(scale);
  const F32x16 d = WidenF16(half);
  const F32x16 limit = Splat(127.0f);
  for (int part = 0; part < 2; ++part) {
    const F32x16 ratio = (part == 0 ? low : high) / d;
    // NaN (0 / 0, or a poisoned scale) becomes 0. A subnormal scale is coarse
    // enough to need the limit.
    const F32x16 clamped =
        Max(Select(Less(ratio, limit), ratio, limit), -limit);
    const F32x16 safe = Select(IsNan(ratio), F32x16{}, clamped);
    const I8x16 q = LowBytes(RoundToInt(safe));
    memcpy(out + 16 * part, &q, sizeof(q));
  }
  return half[0];
}

template <class Element>
WEFT_INLINE void PlaceHead(const Element* from, int64_t head_dim, bool keys,
                           int64_t place, uint8_t* head) {
  Element* to = reinterpret_cast<Element*>(head);
  if (keys) {
    for (int64_t i = 0; i < head_dim; ++i) {
      to[i * kPageTokens + place] = from[i];
    }
  } else {
    memcpy(to + place * head_dim, from,
           static_cast<size_t>(head_dim) * sizeof(Element));
  }
}

// `from` has room for one more, which completes the last pair.
WEFT_INLINE void PlaceBF16(uint16_t* from, int64_t head_dim, bool keys,
                           int64_t place, uint8_t* head) {
  if (keys) {
    from[head_dim] = 0;
    for (int64_t i = 0; i < head_dim; i += 2) {
      memcpy(head + (i * kPageTokens + place * 2) * 2, from + i, 4);
    }
  } else {
    uint16_t* to = reinterpret_cast<uint16_t*>(head) +
                   KvElement(KvType::kBF16, false, head_dim, place, 0);
    for (int64_t i = 0; i < head_dim; ++i) to[2 * i] = from[i];
  }
}

template <KvType kType>
WEFT_INLINE void WriteHead(const KvWriteArgs& args, const float* x, int64_t row,
                           int64_t head_index) {
  const int64_t dims = args.head_dim;
  const int64_t position = args.positions[row];
  const int64_t place = position % kPageTokens;
  uint8_t* head = KvPage(*args.state, args.slots[row], position) +
                  head_index * KvHeadBytes(kType, dims);
  if constexpr (kType == KvType::kF32) {
    PlaceHead(x, dims, args.keys, place, head);
  } else if constexpr (kType == KvType::kQ8_0) {
    int8_t q[kMaxHeadDim];
    uint16_t scales[kMaxHeadDim / 32];
    for (int64_t i = 0; i < dims; i += 32) {
      scales[i / 32] = ConvertQ8(x + i, q + i);
    }
    PlaceHead(q, dims, args.keys, place, head);
    PlaceHead(scales, dims / 32, args.keys, place, head + dims * kPageTokens);
  } else if constexpr (kType == KvType::kF16) {
    uint16_t converted[kMaxHeadDim + 16];
    ConvertF16(x, dims, converted);
    PlaceHead(converted, dims, args.keys, place, head);
  } else {
    static_assert(kType == KvType::kBF16, "a type that nobody writes");
    uint16_t converted[kMaxHeadDim + 16];
    ConvertBF16(x, dims, converted);
    PlaceBF16(converted, dims, args.keys, place, head);
  }
}

template <KvType kType>
void KvWrite(const KvWriteArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = RowOf(args.x, row);
    for (int64_t head = 0; head < args.heads; ++head) {
      WriteHead<kType>(args, x + head * args.head_dim, row, head);
    }
  }
}

template <KvType kType>
void RopeKvWrite(const RopeKvWriteArgs& args, int64_t begin, int64_t end) {
  RopeTables tables;
  RopeFrequencies(args.rope, &tables);
  for (int64_t row = begin; row < end; ++row) {
    RopeAngles(args.rope, row, &tables);
    const float* x = RowOf(args.rope.x, row);
    for (int64_t head = 0; head < args.rope.heads; ++head) {
      float rotated[kMaxHeadDim];
      RotateHead(args.rope, tables, x + head * args.rope.head_dim, rotated);
      WriteHead<kType>(args.write, rotated, row, head);
    }
  }
}

constexpr CacheKernel<KvWriteArgs> kKvWriteKernels[] = {
    {"kv_write", KvType::kF32, KvWrite<KvType::kF32>},
    {"kv_write", KvType::kF16, KvWrite<KvType::kF16>},
    {"kv_write", KvType::kBF16, KvWrite<KvType::kBF16>},
    {"kv_write", KvType::kQ8_0, KvWrite<KvType::kQ8_0>},
};

constexpr CacheKernel<RopeKvWriteArgs> kRopeKvWriteKernels[] = {
    {"rope_kv_write", KvType::kF32, RopeKvWrite<KvType::kF32>},
    {"rope_kv_write", KvType::kF16, RopeKvWrite<KvType::kF16>},
    {"rope_kv_write", KvType::kBF16, RopeKvWrite<KvType::kBF16>},
    {"rope_kv_write", KvType::kQ8_0, RopeKvWrite<KvType::kQ8_0>},
};

}  // namespace
}  // namespace weft
