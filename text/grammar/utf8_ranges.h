// Classes of characters as sequences of byte ranges.
//
// Idea (Thompson's, for the first UTF-8 greps; RE2 has it, too): a range of
// code points is cut where the length of its UTF-8 changes and where a leading
// byte does not come with all of its followers; each piece is a product of
// ranges of bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "text/grammar/syntax.h"

namespace weft::grammar {

struct ByteRange {
  uint8_t first, last;
};
using ByteRanges = std::vector<ByteRange>;

// In order, without overlaps and surrogates; the complement if `negated`.
std::vector<CodePoints> Normalized(std::vector<CodePoints> ranges,
                                   bool negated);
// One to four byte ranges each; together just the characters of `ranges`, which
// are normalized.
std::vector<ByteRanges> Utf8Sequences(const std::vector<CodePoints>& ranges);

}  // namespace weft::grammar
