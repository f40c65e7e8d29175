// Bytes that values take in memory, layouts included.
#pragma once

#include "graph/graph.h"
#include "ops/kernels/kv_layout.h"

namespace weft {

// Of a value within these bounds. States: the whole context of one sequence, in
// whole pages.
int64_t StorageBytes(const ValueType& type, const Bounds& bounds);

// A value of the arena or a weight as kernels see it: rows of all dimensions
// but the first. `row_bytes` is 0 for quantised rows, quantised weights and
// packed layouts.
Operand MatrixOperand(const ValueType& type, const Bounds& step, void* data);

// A state's [S, heads, head_dim] and type, as kernels name them.
KvType KvTypeOf(DType dtype);
// Bytes of one page of a state.
int64_t KvPageBytes(const ValueType& state);

}  // namespace weft
