// F32, F16 and BF16 weights in panels: layout "panel16", [rows / 16][depth][16]
// in the weight's own type. The last panel is filled with zeros. Thread-safe.
#pragma once

#include <cstdint>

#include "graph/dtype.h"

namespace weft {

// Bytes of one panel. Requires kF32, kF16 or kBF16, here and below.
int64_t DensePanelBytes(DType type, int64_t depth);

// rows[i] is the row of lane i as the file holds it (any alignment), or null
// for zeros; the caller thereby joins weights (Q, K and V) or interleaves them
// (gate and up). Writes DensePanelBytes bytes.
void PackDensePanel(DType type, const uint8_t* const rows[16], int64_t depth,
                    uint8_t* dst);

// Row `row` of a packed weight as floats; widening is exact.
void UnpackDenseRow(DType type, const uint8_t* packed, int64_t depth,
                    int64_t row, float* dst);

}  // namespace weft
