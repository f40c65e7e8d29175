#include "runtime/check/content.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/kernels/quantized_rows.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "xxhash.h"

namespace weft {
namespace {

// One number of a value, and how far rounding to the value's type may move it.
struct Number {
  double value;
  double unit;
};

// Numbers that may differ by a unit: those that lie in the middle of two.
constexpr double kUnitsAllowed = 0.03;

bool IsState(const ValueType& type) {
  return type.layout == "keys" || type.layout == "values";
}

// Reads content row by row.
class Reader {
 public:
  Reader(const ValueType& type, const Bounds& step, const Content& content)
      : type_(type),
        data_(content.bytes().data()),
        operand_(MatrixOperand(type, step, const_cast<uint8_t*>(data_))) {
    if (!IsState(type)) return;
    const int64_t pages = (operand_.rows + kPageTokens - 1) / kPageTokens;
    for (int64_t p = 0; p < pages; ++p) table_.push_back(p);
    state_ = {const_cast<uint8_t*>(data_), KvPageBytes(type), table_.data(),
              pages};
  }

  int64_t rows() const { return operand_.rows; }
  int64_t columns() const { return operand_.columns; }

  Number At(int64_t row, int64_t column) const {
    if (IsState(type_)) return StateNumber(row, column);
    if (type_.dtype == DType::kQ8Rows) {
      const QuantizedBlock block =
          QuantizedBlockAt(operand_.data, rows(), columns(), row, column / 32);
      const double scale = *block.scale;
      return {scale * block.q[column % 32], std::fabs(scale)};
    }
    if (type_.dtype == DType::kI32) {
      int32_t x;
      std::memcpy(&x, data_ + (row * columns() + column) * 4, 4);
      return {static_cast<double>(x), 0};
    }
    float x;
    std::memcpy(&x, data_ + row * operand_.row_bytes + column * 4, 4);
    return {x, 0};
  }

 private:
  Number StateNumber(int64_t position, int64_t column) const {
    const int64_t head_dim = type_.shape[2].value;
    const int64_t head = column / head_dim, d = column % head_dim;
    const double x = ReadKv(type_, state_, 0, position, head, d);
    switch (type_.dtype) {
      case DType::kF16:
        return {x, std::fabs(x) / 1024 + 1e-7};
      case DType::kBF16:
        return {x, std::fabs(x) / 128};
      case DType::kQ8_0: {
        // The block's scale is its largest number's 127th part.
        double largest = 0;
        for (int64_t i = d / 32 * 32; i < d / 32 * 32 + 32; ++i) {
          largest = std::fmax(
              largest, std::fabs(ReadKv(type_, state_, 0, position, head, i)));
        }
        return {x, largest / 127};
      }
      default:
        return {x, 0};
    }
  }

  const ValueType& type_;
  const uint8_t* data_;
  const Operand operand_;
  std::vector<int32_t> table_;
  KvState state_ = {};
};

}  // namespace

Content::Content(std::vector<uint8_t> bytes) : own_(std::move(bytes)) {
  bytes_ = own_;
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  hash_ = {hash.high64, hash.low64};
}

Content::Content(absl::Span<const uint8_t> bytes,
                 std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), bytes_(bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  hash_ = {hash.high64, hash.low64};
}

Difference Compare(const ValueType& type, const Bounds& step,
                   const Content& found, const Content& want, double limit) {
  Difference worst;
  if (found == want) return worst;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Reader found_reader(type, step, found), want_reader(type, step, want);
  double row_worst = 0;
  const auto report = [&](double relative, int64_t row, int64_t column,
                          double f, double w) {
    row_worst = std::fmax(row_worst, relative);
    if (relative <= worst.relative) return;
    worst.relative = relative;
    worst.row = row;
    worst.column = column;
    worst.found = f;
    worst.want = w;
  };
  int64_t units = 0;
  worst.rows = want_reader.rows();
  for (int64_t row = 0; row < want_reader.rows(); ++row) {
    row_worst = 0;
    double squares = 0;
    int64_t finite = 0;
    for (int64_t k = 0; k < want_reader.columns(); ++k) {
      const double w = want_reader.At(row, k).value;
      if (!std::isfinite(w)) continue;
      squares += w * w;
      ++finite;
    }
    const double size = std::sqrt(squares / std::max<int64_t>(finite, 1));
    for (int64_t k = 0; k < want_reader.columns(); ++k) {
      const Number f = found_reader.At(row, k), w = want_reader.At(row, k);
      if (f.value == w.value || (std::isnan(f.value) && std::isnan(w.value))) {
        continue;
      }
      if (!std::isfinite(f.value) || !std::isfinite(w.value)) {
        report(kInfinity, row, k, f.value, w.value);
        continue;
      }
      const double error = std::fabs(f.value - w.value);
      const double unit = 1.001 * std::fmax(f.unit, w.unit);
      // Scales themselves differ by rounding; that is no unit.
      if (error > 0.5 * unit) ++units;
      if (error > unit) {
        report((error - unit) / (size + 1e-30), row, k, f.value, w.value);
      }
    }
    if (row_worst > limit) ++worst.rows_beyond;
  }
  const int64_t numbers = want_reader.rows() * want_reader.columns();
  const bool rounded = type.dtype != DType::kF32 && type.dtype != DType::kI32;
  if (rounded && units > kUnitsAllowed * numbers + 2) {
    worst.relative = kInfinity;
  }
  return worst;
}

}  // namespace weft
