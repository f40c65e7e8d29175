#include "ops/weight_source.h"

#include <algorithm>

#include "ops/kernels/matmul/matmul.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// Vectors (biases) are joined element by element.
int64_t RowElementsOf(const ValueType& type) {
  return type.shape.rank() == 2 ? type.shape[1].value : 1;
}

}  // namespace

void WeightSource::AddRows(const uint8_t* data, int64_t rows) {
  parts_.push_back({rows_, data});
  rows_ += rows;
}

void WeightSource::Add(const ValueType& type, const uint8_t* data) {
  row_bytes_ = RowBytes(type.dtype, RowElementsOf(type));
  AddRows(data, type.shape[0].value);
}

void WeightSource::AddSlice(const ValueType& type, const uint8_t* data,
                            int64_t parts, int64_t begin, int64_t size) {
  row_bytes_ = RowBytes(type.dtype, RowElementsOf(type));
  const int64_t part_rows = type.shape[0].value / parts;
  for (int64_t part = 0; part < parts; ++part) {
    AddRows(data + (part * part_rows + begin) * row_bytes_, size);
  }
}

void WeightSource::Interleave() { interleaved_ = true; }

const uint8_t* WeightSource::Row(int64_t row) const {
  if (interleaved_) {
    const int64_t panel = row / kPanelRows;
    row = panel / 2 * kPanelRows + row % kPanelRows + (panel % 2) * (rows_ / 2);
  }
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), row,
      [](int64_t r, const Part& part) { return r < part.first_row; });
  const Part& part = *(after - 1);
  return part.data + (row - part.first_row) * row_bytes_;
}

void WeightSource::Pack(const ValueType& type, uint8_t* out) const {
  FindWeightLayout(type.layout)
      ->pack(
          type.dtype, rows_, RowElementsOf(type),
          [this](int64_t row) { return Row(row); }, out);
}

}  // namespace weft
