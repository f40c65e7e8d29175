// Ways a weight's rows lie in memory, one row of a table each.
//
//   ""                       row after row, as in a model file
//   "panel16"                16 rows interleaved, one vector lane each
//                            (kernels/matmul/pack.h)
//   "onednn_bf16_<version>"  F16 and BF16 as pairs of bfloat16, 64 rows wide;
//                            F16 is rounded (kernels/matmul/bf16_layout.h)
//
// Rows of weights that were concatenated or interleaved are named by where they
// come from, so a weight is packed from its sources without a copy in between.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/dtype.h"

namespace weft {

struct WeightLayout {
  const char* name;
  // Whether weights of this type and shape can have it.
  bool (*supports)(DType dtype, int64_t rows, int64_t columns);
  int64_t (*bytes)(DType dtype, int64_t rows, int64_t columns);
  // `source(row)` is the row as a model file stores it.
  void (*pack)(DType dtype, int64_t rows, int64_t columns,
               const std::function<const uint8_t*(int64_t)>& source,
               uint8_t* packed);
  // One row as floats: the same floats whatever the layout, where it keeps them
  // exactly.
  void (*read_row)(DType dtype, int64_t rows, int64_t columns,
                   const uint8_t* data, int64_t row, float* out);
  // Whether nothing of weights of this type is rounded.
  bool (*keeps_exactly)(DType dtype);
};

absl::Span<const WeightLayout> AllWeightLayouts();

// Null when there is no such layout.
const WeightLayout* FindWeightLayout(absl::string_view name);

}  // namespace weft
