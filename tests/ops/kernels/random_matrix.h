// Random float matrices with padded rows, for kernel tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace weft {

// `rows` rows of `columns` floats, `stride` floats apart. Padding is NaN, so a
// kernel that reads it shows, and Padding() tells whether one wrote it.
class RandomMatrix {
 public:
  RandomMatrix(int64_t rows, int64_t columns, std::mt19937& random,
               int64_t padding = 3, float scale = 1.0f)
      : rows_(rows),
        columns_(columns),
        stride_(columns + padding),
        values_(static_cast<size_t>(rows * stride_), NAN) {
    std::normal_distribution<float> normal(0.0f, scale);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) at(r, c) = normal(random);
    }
  }

  float& at(int64_t row, int64_t column) {
    return values_[static_cast<size_t>(row * stride_ + column)];
  }
  float* data() { return values_.data(); }
  int64_t row_bytes() const { return stride_ * 4; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  bool PaddingUntouched() {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = columns_; c < stride_; ++c) {
        if (!std::isnan(at(r, c))) return false;
      }
    }
    return true;
  }

  // Same bits everywhere, NaN included.
  bool SameBits(const RandomMatrix& other) const {
    return values_.size() == other.values_.size() &&
           std::memcmp(values_.data(), other.values_.data(),
                       values_.size() * 4) == 0;
  }

 private:
  int64_t rows_, columns_, stride_;
  std::vector<float> values_;
};

}  // namespace weft
