// Rows of float32 as any stored type, with as little error as the type allows.
//
// The searches (ops/formats/fit.h) minimise squared error, weighted by what is
// known of the activations. Deterministic: the same row gives the same bytes on
// every machine. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "graph/dtype.h"

namespace weft {

// Writes RowBytes(type, n) bytes to dst (any alignment). Requires n >= 0.
// InvalidArgument, with nothing written:
//   - type is not one that a model's weights may have,
//   - n is not a multiple of the type's block (a partial block is never
//   written),
//   - a value is NaN or infinite (the message names the element), or beyond
//   +-65504,
//     the largest float16, for types with float16 values or scales, or +-2688
//     for NVFP4.
// `importance`: n weights for the squared errors, finite and not negative (the
// mean squares of what the columns are multiplied with); null: all weigh alike.
absl::Status QuantizeRow(DType type, const float* src, void* dst, int64_t n,
                         const float* importance = nullptr);

}  // namespace weft
