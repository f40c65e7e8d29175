// Shapes of up to four dimensions whose sizes are numbers or one of three
// symbols.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// What a symbol stands for in one plan or one step.
struct Bounds {
  int64_t tokens = 0;   // T: token rows in a step
  int64_t rows = 0;     // R: rows whose logits are wanted, at most T
  int64_t context = 0;  // S: positions of a sequence
};

struct Dim {
  enum Symbol : uint8_t { kNumber, kTokens, kRows, kContext };

  Symbol symbol = kNumber;
  int64_t value = 0;  // kNumber only

  static Dim Number(int64_t n) { return {kNumber, n}; }
  static Dim Tokens() { return {kTokens, 0}; }
  static Dim Rows() { return {kRows, 0}; }
  static Dim Context() { return {kContext, 0}; }

  int64_t Resolve(const Bounds& bounds) const;
  std::string ToString() const;  // "T", "R", "S" or the number

  bool operator==(const Dim& other) const {
    return symbol == other.symbol && value == other.value;
  }
  bool operator!=(const Dim& other) const { return !(*this == other); }
};

// Dimension 0 is the outermost; the last one is contiguous in memory.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  // Requires at most kMaxRank dims.
  Shape(std::initializer_list<Dim> dims);

  int rank() const { return rank_; }
  const Dim& operator[](int i) const { return dims_[i]; }
  void Append(Dim dim);  // requires rank() < kMaxRank

  // Product of all dims. Overflow is excluded by Graph::Verify's limit on dims.
  int64_t Elements(const Bounds& bounds) const;
  // Product of all dims but the first (1 for rank 1 and below).
  int64_t RowElements(const Bounds& bounds) const;

  std::string ToString() const;  // "[T,2048]"

  bool operator==(const Shape& other) const;
  bool operator!=(const Shape& other) const { return !(*this == other); }

 private:
  Dim dims_[kMaxRank];
  int rank_ = 0;
};

}  // namespace weft
