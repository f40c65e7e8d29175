#include "runtime/check/content.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/kernels/quantized_rows.h"
#include "ops/kernels/slot_layout.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"
#include "xxhash.h"

namespace weft {
namespace {

// Numbers that may differ by a unit: those that lie in the middle of two.
constexpr double kUnitsAllowed = 0.03;
// Of what rounding moved in a row: a kernel may round what is summed in one
// number otherwise than any that were tried.
constexpr double kMovesForgiven = 3;

// Reads content row by row.
class Reader {
 public:
  Reader(const ValueType& type, const Bounds& step, const Content& content)
      : type_(type),
        data_(content.bytes().data()),
        operand_(MatrixOperand(type, step, const_cast<uint8_t*>(data_))) {
    if (!IsPagedState(type)) return;
    const int64_t pages = (operand_.rows + kPageTokens - 1) / kPageTokens;
    for (int64_t p = 0; p < pages; ++p) table_.push_back(p);
    state_ = StateOf(type, const_cast<uint8_t*>(data_), table_);
  }

  int64_t rows() const { return operand_.rows; }
  int64_t columns() const { return operand_.columns; }

  std::vector<double> Row(int64_t row) const {
    std::vector<double> numbers(columns());
    if (IsPagedState(type_)) {
      const int64_t head_dim = type_.shape[2].value;
      for (int64_t k = 0; k < columns(); ++k) {
        numbers[k] = ReadKv(type_, state_, 0, row, k / head_dim, k % head_dim);
      }
    } else if (type_.layout == "matrices") {
      const int64_t keys = type_.shape[1].value, values = type_.shape[2].value;
      const float* matrix = reinterpret_cast<const float*>(data_) +
                            row * MatrixFloats(keys, values);
      for (int64_t k = 0; k < columns(); ++k) {
        numbers[k] = matrix[MatrixElement(keys, k / values, k % values)];
      }
    } else if (type_.dtype == DType::kQ8Rows) {
      for (int64_t k = 0; k < columns(); ++k) {
        const QuantizedBlock block = Block(row, k);
        numbers[k] = static_cast<double>(*block.scale) * block.q[k % 32];
      }
    } else if (type_.dtype == DType::kI32) {
      std::vector<int32_t> integers(columns());
      std::memcpy(integers.data(), data_ + row * operand_.row_bytes,
                  columns() * sizeof(int32_t));
      numbers.assign(integers.begin(), integers.end());
    } else {
      // Rows of floats, windows too, and weights in any layout.
      std::vector<float> floats(columns());
      FindWeightLayout(type_.layout == "window" ? "" : type_.layout)
          ->read_row(type_.dtype, rows(), columns(), data_, row, floats.data());
      numbers.assign(floats.begin(), floats.end());
    }
    return numbers;
  }

  // How far rounding to the value's type may move this number.
  double UnitAt(const std::vector<double>& numbers, int64_t row,
                int64_t column) const {
    if (type_.dtype == DType::kQ8Rows) {
      return std::fabs(*Block(row, column).scale);
    }
    if (!IsPagedState(type_)) return 0;
    if (type_.dtype == DType::kF16) {
      return std::fabs(numbers[column]) / 1024 + 1e-7;
    }
    if (type_.dtype == DType::kBF16) return std::fabs(numbers[column]) / 128;
    if (type_.dtype != DType::kQ8_0) return 0;
    // The block's scale is its largest number's 127th part.
    double largest = 0;
    const int64_t begin = column / 32 * 32;
    for (int64_t k = begin; k < begin + 32; ++k) {
      largest = std::fmax(largest, std::fabs(numbers[k]));
    }
    return largest / 127;
  }

 private:
  QuantizedBlock Block(int64_t row, int64_t column) const {
    return QuantizedBlockAt(operand_.data, rows(), columns(), row, column / 32);
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

bool RoundsToUnits(const ValueType& type) {
  return type.dtype == DType::kQ8Rows ||
         (IsPagedState(type) && type.dtype != DType::kF32);
}

std::vector<double> Numbers(const ValueType& type, const Bounds& step,
                            const Content& content) {
  const Reader reader(type, step, content);
  std::vector<double> numbers;
  for (int64_t row = 0; row < reader.rows(); ++row) {
    const std::vector<double> one = reader.Row(row);
    numbers.insert(numbers.end(), one.begin(), one.end());
  }
  return numbers;
}

bool HasNan(const ValueType& type, const Bounds& step, const Content& content) {
  const Reader reader(type, step, content);
  for (int64_t row = 0; row < reader.rows(); ++row) {
    const std::vector<double> numbers = reader.Row(row);
    if (std::any_of(numbers.begin(), numbers.end(),
                    [](double x) { return std::isnan(x); })) {
      return true;
    }
  }
  return false;
}

Difference Compare(const ValueType& type, const Bounds& step,
                   const Content& found, const Content& want, double limit,
                   const std::vector<double>* moved) {
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
  const bool rounded = RoundsToUnits(type);
  int64_t units = 0;
  worst.rows = want_reader.rows();
  for (int64_t row = 0; row < want_reader.rows(); ++row) {
    row_worst = 0;
    const std::vector<double> f = found_reader.Row(row);
    const std::vector<double> w = want_reader.Row(row);
    double squares = 0;
    int64_t finite = 0;
    for (double x : w) {
      if (!std::isfinite(x)) continue;
      squares += x * x;
      ++finite;
    }
    const double size = std::sqrt(squares / std::max<int64_t>(finite, 1));
    const double* moves =
        moved == nullptr ? nullptr : moved->data() + row * w.size();
    const double forgiven =
        moves == nullptr || rounded
            ? 0
            : kMovesForgiven * *std::max_element(moves, moves + w.size());
    for (int64_t k = 0; k < want_reader.columns(); ++k) {
      if (f[k] == w[k] || (std::isnan(f[k]) && std::isnan(w[k]))) continue;
      if (!std::isfinite(f[k]) || !std::isfinite(w[k])) {
        report(kInfinity, row, k, f[k], w[k]);
        continue;
      }
      const double error = std::fabs(f[k] - w[k]);
      // Scales themselves differ by rounding; that is no unit.
      const double unit = 1.001 * std::fmax(found_reader.UnitAt(f, row, k),
                                            want_reader.UnitAt(w, row, k));
      if (error > 0.5 * unit && (moves == nullptr || moves[k] < 0.5 * unit)) {
        ++units;
      }
      const double beyond = error - std::fmax(unit, forgiven);
      if (beyond > 0) report(beyond / (size + 1e-30), row, k, f[k], w[k]);
    }
    if (row_worst > limit) ++worst.rows_beyond;
  }
  const int64_t numbers = want_reader.rows() * want_reader.columns();
  if (rounded && units > kUnitsAllowed * numbers + 2) {
    worst.relative = kInfinity;
  }
  return worst;
}

}  // namespace weft
