// Bytes that values take in memory, layouts included.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/kernels/kv_layout.h"

namespace weft {

// Of a value within these bounds. States: what one sequence takes, the whole
// context in whole pages or its slot.
int64_t StorageBytes(const ValueType& type, const Bounds& bounds);

// A value of the arena or a weight as kernels see it: rows of all dimensions
// but the first. `row_bytes` is 0 for quantised rows, quantised weights and
// packed layouts.
Operand MatrixOperand(const ValueType& type, const Bounds& step, void* data);

// The type that numbers of such a cache have.
DType DTypeOf(KvType type);
// The inverse; empty for types that no cache has.
std::optional<KvType> FindKvType(DType dtype);
// Requires a cache's type.
KvType KvTypeOf(DType dtype);
// Numbers of a value of a head in a state: all, or with `value_dim` above 0 the
// first so many.
int64_t ValueDim(const ValueType& state, int64_t value_dim);

// A state of one sequence in the memory at `data`, of StorageBytes: its pages
// by the table, which must outlive what is returned.
KvState StateOf(const ValueType& type, uint8_t* data,
                const std::vector<int32_t>& page_table);
// Bytes of one page of a state by position.
int64_t KvPageBytes(const ValueType& state);

}  // namespace weft
