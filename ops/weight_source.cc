#include "ops/weight_source.h"

#include <algorithm>
#include <cstring>

#include "ops/dequantize.h"
#include "ops/kernels/half.h"
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

DType WeightSource::TransposedType(DType type) {
  return Info(type).quantized ? DType::kF16 : type;
}

void WeightSource::SetTransposed(const ValueType& type, const uint8_t* data,
                                 int64_t parts, int64_t begin, int64_t size) {
  transposed_ = {type, data, parts, begin, size};
}

std::vector<uint8_t> WeightSource::TransposedRows() const {
  const auto& [type, data, parts, begin, size] = transposed_;
  const int64_t part_rows = type.shape[0].value / parts;
  const int64_t columns = type.shape[1].value;
  const int64_t row_bytes = RowBytes(type.dtype, columns);
  const DType to = TransposedType(type.dtype);
  std::vector<uint8_t> rows(RowBytes(to, parts * size * columns));
  std::vector<float> row(columns);
  for (int64_t r = 0; r < parts * size; ++r) {
    const int64_t part = r / size, place = r % size;
    DequantizeRow(type.dtype,
                  data + (part * part_rows + begin + place) * row_bytes,
                  row.data(), columns);
    for (int64_t k = 0; k < columns; ++k) {
      const int64_t at = (part * columns + k) * size + place;
      if (to == DType::kF32) {
        std::memcpy(rows.data() + at * 4, &row[k], 4);
        continue;
      }
      const uint16_t half =
          to == DType::kBF16 ? F32ToBF16(row[k]) : F32ToF16(row[k]);
      std::memcpy(rows.data() + at * 2, &half, 2);
    }
  }
  return rows;
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
  if (transposed_.data != nullptr) {
    const std::vector<uint8_t> rows = TransposedRows();
    ValueType plain = type;
    plain.layout = "";
    WeightSource source;
    source.Add(plain, rows.data());
    return source.Pack(type, out);
  }
  FindWeightLayout(type.layout)
      ->pack(
          type.dtype, rows_, RowElementsOf(type),
          [this](int64_t row) { return Row(row); }, out);
}

}  // namespace weft
