// Sizes inside a page of the KV cache; the layouts are those of KvState
// (kernel.h). Static functions only, since files compiled for one instruction
// set include this.
#pragma once

#include <stdint.h>

#include "ops/kernels/kernel.h"

namespace weft {

enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8_0 };
constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16,
                               KvType::kQ8_0};

// Heads longer than this are refused: kernels keep one head on the stack.
constexpr int kMaxHeadDim = 576;

// Bytes of one value, without the scales of kQ8_0.
static constexpr int KvElementBytes(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 4;
    case KvType::kF16:
    case KvType::kBF16:
      return 2;
    case KvType::kQ8_0:
      return 1;
  }
  __builtin_unreachable();
}

// Bytes of one head in one page, the same for keys and values. kQ8_0 requires
// head_dim % 32 == 0.
static inline int64_t KvHeadBytes(KvType type, int64_t head_dim) {
  if (type == KvType::kBF16) head_dim += head_dim % 2;
  const int64_t scales =
      type == KvType::kQ8_0 ? head_dim / 32 * kPageTokens * 2 : 0;
  return head_dim * kPageTokens * KvElementBytes(type) + scales;
}

// Where dimension d at place `at` of a page stands, in elements from the head's
// first; the scales of kQ8_0, one for 32 dimensions, like f32 behind these.
static inline int64_t KvElement(KvType type, bool keys, int64_t head_dim,
                                int64_t at, int64_t d) {
  if (type == KvType::kBF16) {
    return keys ? (d / 2 * kPageTokens + at) * 2 + d % 2
                : (at / 2 * head_dim + d) * 2 + at % 2;
  }
  return keys ? d * kPageTokens + at : at * head_dim + d;
}

// The page that holds `position` of the sequence in `slot`.
static inline uint8_t* KvPage(const KvState& state, int32_t slot,
                              int64_t position) {
  const int64_t entry =
      slot * state.pages_per_sequence + position / kPageTokens;
  return state.pages + state.page_table[entry] * state.page_bytes;
}

}  // namespace weft
