#include "ops/weight_source.h"

#include "ops/kernels/matmul/matmul.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// Vectors (biases) are joined element by element.
int64_t RowElementsOf(const ValueType& type) {
  return type.shape.rank() == 2 ? type.shape[1].value : 1;
}

}  // namespace

void WeightSource::Add(const ValueType& type, const uint8_t* data) {
  row_bytes_ = RowBytes(type.dtype, RowElementsOf(type));
  parts_.push_back({rows_, data});
  rows_ += type.shape[0].value;
}

void WeightSource::Interleave() { interleaved_ = true; }

const uint8_t* WeightSource::Row(int64_t row) const {
  if (interleaved_) {
    const int64_t panel = row / kPanelRows;
    row = panel / 2 * kPanelRows + row % kPanelRows + (panel % 2) * (rows_ / 2);
  }
  size_t part = parts_.size() - 1;
  while (parts_[part].first_row > row) --part;
  return parts_[part].data + (row - parts_[part].first_row) * row_bytes_;
}

void WeightSource::Pack(const ValueType& type, uint8_t* out) const {
  FindWeightLayout(type.layout)
      ->pack(
          type.dtype, rows_, RowElementsOf(type),
          [this](int64_t row) { return Row(row); }, out);
}

}  // namespace weft
