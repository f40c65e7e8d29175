// The vector of a text, made of its tokens'.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// The numbers are those that model files have (`pooling_type`).
enum class Pooling : uint8_t { kNone = 0, kMean = 1, kFirst = 2, kLast = 3 };

// Takes the tokens' vectors one after the other. Not thread-safe.
class Pooler {
 public:
  // kNone pools as kMean does.
  Pooler(Pooling pooling, int64_t columns)
      : pooling_(pooling), sums_(columns) {}

  // Requires as many numbers as columns.
  void Add(absl::Span<const float> vector);

  // Requires at least one vector. Not normalised.
  std::vector<float> Result() const;

 private:
  const Pooling pooling_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace weft
