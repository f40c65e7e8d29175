// What the inner loops of byte products need to know of a weight type; types
// that differ only in their unpacking share one kind, and so one loop.
//
// Constants only; unnamed namespace as in all that files of one instruction set
// include (vector.h).
#pragma once

#include "ops/kernels/matmul/panel16.h"

namespace weft {
namespace {

template <int per_32, bool has_min, int offset, int max_byte>
struct ProductKind {
  static constexpr int kScalesPer32 = per_32;
  static constexpr bool kHasMin = has_min;
  // Of the unsigned bytes.
  static constexpr int kUnsignedOffset = offset;
  // Bytes above 127 are no signed bytes: loops that want those take the byte -
  // 128, which has no offset left.
  static constexpr bool kSigned = max_byte > 127;
  static constexpr int kOffset = kSigned ? 0 : offset;
  static constexpr int kPairMost = 2 * 127 * (kSigned ? 128 : max_byte);
  // Groups whose pair sums fit 16 bits together: a divisor of the groups that
  // share a scale.
  static constexpr int kGroupsFit = 32767 / kPairMost;
  static constexpr int kGroups = 8 / per_32;
  static constexpr int kGroupsPer16Bits = kGroupsFit >= 8   ? kGroups
                                          : kGroupsFit >= 4 ? 4
                                          : kGroupsFit >= 2 ? 2
                                                            : 1;
  static constexpr int kScaleFloats = 32 * per_32 * (has_min ? 2 : 1);
};

template <class Block>
using ProductKindOf =
    ProductKind<BlockFormat<Block>::kScalesPer32, BlockFormat<Block>::kHasMin,
                BlockFormat<Block>::kOffset, BlockFormat<Block>::kMaxByte>;

}  // namespace
}  // namespace weft
