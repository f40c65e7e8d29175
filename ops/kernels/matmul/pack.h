// Quantised weights from GGUF rows to panels (panel16.h) and back.
//
// Thread-safe. Requires a type for which Info(type).quantized holds, and a
// depth that is a positive multiple of its block_elements; the caller has
// checked both.
#pragma once

#include <cstdint>

#include "graph/dtype.h"

namespace weft {

// Bytes of a packed weight of `rows` rows: whole panels, each a multiple of 64.
// Panel p starts at p * PackedPanelBytes.
int64_t PackedPanelBytes(DType type, int64_t depth);
int64_t PackedBytes(DType type, int64_t rows, int64_t depth);

// Packs one panel. rows[i] is the GGUF row of lane i (any alignment), or null
// for a row of zeros; the caller thereby joins weights (Q, K and V) or
// interleaves them (gate and up). Writes PackedPanelBytes bytes.
void PackPanel(DType type, const uint8_t* const rows[16], int64_t depth,
               uint8_t* dst);

// Row `row` of a packed weight as floats, bit-equal to dequantising the GGUF
// row: scale * quant - min, each operation rounded (ops/formats/format.h).
void UnpackRow(DType type, const uint8_t* packed, int64_t depth, int64_t row,
               float* dst);

}  // namespace weft
