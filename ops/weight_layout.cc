#include "ops/weight_layout.h"

#include <cstring>

#include "ops/dequantize.h"
#include "ops/kernels/matmul/bf16_layout.h"
#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/pack.h"
#include "ops/kernels/matmul/pack_dense.h"

namespace weft {
namespace {

bool SupportsRows(DType dtype, int64_t, int64_t) {
  return CanDequantize(dtype);
}

int64_t RowsBytes(DType dtype, int64_t rows, int64_t columns) {
  return rows * RowBytes(dtype, columns);
}

void CopyRows(DType dtype, int64_t rows, int64_t columns,
              const std::function<const uint8_t*(int64_t)>& source,
              uint8_t* packed) {
  const int64_t bytes = RowBytes(dtype, columns);
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(packed + row * bytes, source(row), bytes);
  }
}

void ReadPlainRow(DType dtype, int64_t, int64_t columns, const uint8_t* data,
                  int64_t row, float* out) {
  DequantizeRow(dtype, data + row * RowBytes(dtype, columns), out, columns);
}

bool SupportsPanels(DType dtype, int64_t, int64_t) {
  return CanDequantize(dtype);
}

int64_t PanelsBytes(DType dtype, int64_t rows, int64_t columns) {
  return Info(dtype).quantized ? PackedBytes(dtype, rows, columns)
                               : (rows + kPanelRows - 1) / kPanelRows *
                                     DensePanelBytes(dtype, columns);
}

void PackPanels(DType dtype, int64_t rows, int64_t columns,
                const std::function<const uint8_t*(int64_t)>& source,
                uint8_t* packed) {
  const int64_t panel_bytes = PanelsBytes(dtype, kPanelRows, columns);
  for (int64_t first = 0; first < rows; first += kPanelRows) {
    const uint8_t* sources[kPanelRows] = {};
    for (int64_t i = 0; i < kPanelRows && first + i < rows; ++i) {
      sources[i] = source(first + i);
    }
    uint8_t* panel = packed + first / kPanelRows * panel_bytes;
    if (Info(dtype).quantized) {
      PackPanel(dtype, sources, columns, panel);
    } else {
      PackDensePanel(dtype, sources, columns, panel);
    }
  }
}

void ReadPanelRow(DType dtype, int64_t, int64_t columns, const uint8_t* data,
                  int64_t row, float* out) {
  if (Info(dtype).quantized) {
    UnpackRow(dtype, data, columns, row, out);
  } else {
    UnpackDenseRow(dtype, data, columns, row, out);
  }
}

bool KeepsAll(DType) { return true; }
bool KeepsBf16(DType dtype) { return dtype == DType::kBF16; }

constexpr WeightLayout kLayouts[] = {
    {"", SupportsRows, RowsBytes, CopyRows, ReadPlainRow, KeepsAll},
    {"panel16", SupportsPanels, PanelsBytes, PackPanels, ReadPanelRow,
     KeepsAll},
    {kBf16LayoutName, SupportsBf16Layout, Bf16LayoutBytes, PackBf16Layout,
     ReadBf16LayoutRow, KeepsBf16},
};

}  // namespace

absl::Span<const WeightLayout> AllWeightLayouts() { return kLayouts; }

const WeightLayout* FindWeightLayout(absl::string_view name) {
  for (const WeightLayout& layout : kLayouts) {
    if (name == layout.name) return &layout;
  }
  return nullptr;
}

}  // namespace weft
