// Ops that random graphs need no line for: what they take and give follows from
// their records.
#pragma once

#include <random>
#include <vector>

#include "ops/op_table.h"

namespace weft {

struct ElementwiseOp {
  const OpDef* op;
  // Operand 1 may be one vector for all rows of operand 0.
  bool takes_vector;
};

// The primitives of the table, registered ones included, that make of one
// matrix, or of two that are alike, another like it.
std::vector<ElementwiseOp> ElementwiseOps();

// Attributes in their ranges, moderate ones; optional ones may be absent.
Attributes RandomAttributes(const OpSchema& op, std::mt19937* random);

}  // namespace weft
