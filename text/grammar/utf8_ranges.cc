#include "text/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "text/jinja/text.h"

namespace weft::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

void Cut(uint32_t first, uint32_t last, std::vector<ByteRanges>& sequences) {
  // Where the length changes.
  for (const uint32_t limit : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (first <= limit && last > limit) {
      Cut(first, limit, sequences);
      Cut(limit + 1, last, sequences);
      return;
    }
  }
  // Where the last bytes do not run over all of 80 to BF.
  if (last > 0x7F) {
    for (int bits = 6; bits <= 18; bits += 6) {
      const uint32_t low = (1u << bits) - 1;
      if ((first & ~low) == (last & ~low)) continue;
      if ((first & low) != 0) {
        Cut(first, first | low, sequences);
        Cut((first | low) + 1, last, sequences);
        return;
      }
      if ((last & low) != low) {
        Cut(first, (last & ~low) - 1, sequences);
        Cut(last & ~low, last, sequences);
        return;
      }
    }
  }
  std::string low, high;
  jinja::AppendUtf8(first, low);
  jinja::AppendUtf8(last, high);
  ByteRanges sequence;
  for (size_t i = 0; i < low.size(); ++i) {
    sequence.push_back(
        {static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])});
  }
  sequences.push_back(std::move(sequence));
}

}  // namespace

std::vector<CodePoints> Normalized(std::vector<CodePoints> ranges,
                                   bool negated) {
  // Negated, surrogates fall out as if they had been named.
  if (negated) ranges.push_back({kFirstSurrogate, kLastSurrogate});
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePoints& a, const CodePoints& b) {
              return a.first < b.first;
            });
  std::vector<CodePoints> merged;
  for (const CodePoints& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  std::vector<CodePoints> result;
  if (negated) {
    uint32_t next = 0;
    for (const CodePoints& range : merged) {
      if (range.first > next) result.push_back({next, range.first - 1});
      next = range.last + 1;
    }
    if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
    return result;
  }
  for (const CodePoints& range : merged) {
    if (range.last < kFirstSurrogate || range.first > kLastSurrogate) {
      result.push_back(range);
      continue;
    }
    if (range.first < kFirstSurrogate) {
      result.push_back({range.first, kFirstSurrogate - 1});
    }
    if (range.last > kLastSurrogate) {
      result.push_back({kLastSurrogate + 1, range.last});
    }
  }
  return result;
}

std::vector<ByteRanges> Utf8Sequences(const std::vector<CodePoints>& ranges) {
  std::vector<ByteRanges> sequences;
  for (const CodePoints& range : ranges) {
    Cut(range.first, range.last, sequences);
  }
  return sequences;
}

}  // namespace weft::grammar
