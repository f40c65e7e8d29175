// What a value holds in one step, copied out of memory: rows one after the
// other without gaps, quantised rows in their tiles, the pages of a state in
// order of position. Never changes, so copies are shared and known by a hash.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "graph/graph.h"

namespace weft {

class Content {
 public:
  // Takes the bytes.
  explicit Content(std::vector<uint8_t> bytes);
  // Looks at bytes that `owner` keeps alive.
  Content(absl::Span<const uint8_t> bytes, std::shared_ptr<const void> owner);

  absl::Span<const uint8_t> bytes() const { return bytes_; }
  // xxh3 of the bytes, 128 bits.
  std::pair<uint64_t, uint64_t> hash() const { return hash_; }
  bool operator==(const Content& other) const { return hash_ == other.hash_; }

 private:
  std::vector<uint8_t> own_;
  std::shared_ptr<const void> owner_;
  absl::Span<const uint8_t> bytes_;
  std::pair<uint64_t, uint64_t> hash_;
};

using ContentPointer = std::shared_ptr<const Content>;

// How far a value's content lies from what it should be.
struct Difference {
  // Largest difference of two numbers of a row, relative to the root mean
  // square of the row that is right. For types that round to 8 or 16 bits, what
  // goes beyond one unit of the rounding. Infinite where one of the two is not
  // finite and they are not equal, and where more than a few per cent of a
  // quantised value's numbers differ by a unit.
  double relative = 0;
  // Where it is largest.
  int64_t row = 0, column = 0;
  double found = 0, want = 0;
  // Rows whose own difference is beyond what was asked about, and all rows.
  int64_t rows_beyond = 0, rows = 0;
};

// Whether numbers of this type are rounded to 8 or 16 bits.
bool RoundsToUnits(const ValueType& type);

// All numbers of a content, row by row.
std::vector<double> Numbers(const ValueType& type, const Bounds& step,
                            const Content& content);

// Whether one of them is NaN.
bool HasNan(const ValueType& type, const Bounds& step, const Content& content);

// Both of this type within these bounds; KV states of slot 0, positions below
// `step.context`. Counts rows that differ by more than `limit`. `moved`, if
// given, says of each number how far it may have moved because something was
// rounded otherwise: where a number that moved differs by a unit it is not
// counted, and in types that round to none, three times the most of a row is
// forgiven in that row.
Difference Compare(const ValueType& type, const Bounds& step,
                   const Content& found, const Content& want, double limit = 0,
                   const std::vector<double>* moved = nullptr);

}  // namespace weft
