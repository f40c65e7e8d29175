// A norm, and the rounding of its result, as the prologue of a product: what
// fuse-rmsnorm-matmul and fuse-layernorm-matmul have in common.
#pragma once

#include "graph/graph.h"

namespace weft {

// For the norms that are this op: those with one reader, a product that has no
// norm, become a part of it. Where several products read one rounded result,
// the norm becomes `rounded_op`, and they share that. A norm that several
// float products read stays as it is, and so does one of several heads.
void FuseNorm(const OpSchema& op, const OpSchema& rounded_op, Graph* graph);

}  // namespace weft
