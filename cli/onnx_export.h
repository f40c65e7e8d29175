// Graphs as ONNX models, to look at in viewers such as Netron.
//
// `add`, `mul` and `softmax` are ONNX's own operators; all others, fused ones
// and products with quantised weights among them, stand in the domain "weft"
// under their own names, so no ONNX runtime can run the model. Weights are
// initializers without bytes: their data is said to lie in an external file.
// Types that ONNX lacks are bytes there; a weight's or result's true type is
// its documentation. States are inputs, their last versions outputs. The same
// graph gives the same bytes.
//
// Source of the format: onnx.proto of ONNX 1.12, as Debian installs it.
#pragma once

#include <string>

#include "graph/graph.h"

namespace weft {

// A serialized onnx.ModelProto.
std::string ToOnnx(const Graph& graph);

}  // namespace weft
