// F16 and BF16 weights as bfloat16 operands: pairs of columns, 64 rows wide.
//
//   [ceil(rows / 64)][padded depth / 2][64][2]   bfloat16
//
// which is oneDNN's layout BA16a64b2a, and one operand of vdpbf16ps per 16 rows
// and pair. The depth is filled with zeros to a multiple of 32, the rows to one
// of 64. F16 is rounded to bfloat16 (8 bits of significand) once, when packed;
// so an embedding shares a table of BF16 only (WeightLayout::keeps_exactly).
//
// The layout's name carries the version of oneDNN that the program was built
// with, so that a plan of another version is refused: there is no layout of its
// name. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>

#include "graph/dtype.h"

namespace weft {

// "onednn_bf16_" and the version, as in "onednn_bf16_2.6.3".
extern const char kBf16LayoutName[];

bool SupportsBf16Layout(DType dtype, int64_t rows, int64_t columns);
int64_t Bf16LayoutBytes(DType dtype, int64_t rows, int64_t columns);
// `source(row)` is the row as a model file stores it, at any alignment.
void PackBf16Layout(DType dtype, int64_t rows, int64_t columns,
                    const std::function<const uint8_t*(int64_t)>& source,
                    uint8_t* packed);
void ReadBf16LayoutRow(DType dtype, int64_t rows, int64_t columns,
                       const uint8_t* packed, int64_t row, float* out);

}  // namespace weft
