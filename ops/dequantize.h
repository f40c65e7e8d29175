// Rows of any stored type as float32, exactly as the format defines them.
//
// Reference functions and the embedding read weights through this. The rounding
// of quantised types is that of ops/formats/format.h: scale * q, then
// minus min, each a float32 operation. F16 and BF16 widen exactly. Thread-safe.
#pragma once

#include <cstdint>

#include "graph/dtype.h"

namespace weft {

// Writes n floats. Requires a type for which CanDequantize holds, n a multiple
// of its block_elements, and RowBytes(type, n) readable bytes at src (any
// alignment).
using DequantizeFunction = void (*)(const void* src, float* dst, int64_t n);

// Every type a model's weights may have; not kI32, not kQ8Rows.
bool CanDequantize(DType type);

// The row function of a type, for callers with many rows. Requires
// CanDequantize.
DequantizeFunction DequantizerOf(DType type);

void DequantizeRow(DType type, const void* src, float* dst, int64_t n);

}  // namespace weft
