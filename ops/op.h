// What an op is: its name, its rule, what it costs, and a plain function that
// computes it.
//
// One file per op family defines these; op_table.cc lists them. The reference
// functions are the oracle for every kernel: double-precision sums, exact
// integer products, no tricks. They check nothing (the graph was verified) and
// may be slow.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "ops/kernels/kernel.h"

namespace weft {

// One node, as its reference function sees it.
struct ReferenceCall {
  const Graph& graph;
  const Node& node;
  const Operand* inputs;
  const Operand* outputs;
  Bounds step;  // this step's own T, R and S

  const ValueType& input_type(int i) const {
    return graph.value(node.inputs[i]).type;
  }
  const ValueType& output_type(int i) const {
    return graph.value(node.outputs[i]).type;
  }
  template <typename Fields>
  Fields attributes() const {
    return node.attributes.As<Fields>();
  }
};

// Work of one step: bytes moved to and from memory (weights and state
// included), multiply-adds counted as two operations.
struct Cost {
  int64_t bytes = 0;
  int64_t operations = 0;
};

// A product of numbers from 0 on, for costs: the largest there is where it does
// not fit. The verifier bounds what values hold, not what an op does with them.
inline int64_t CappedProduct(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product)
             ? std::numeric_limits<int64_t>::max()
             : product;
}

// The record of an op: what it declares (graph/op_schema.h) and what computes
// it. Fields are set by name.
struct OpDef : OpSchema {
  // The operand whose memory result 0 may take when nothing else reads it
  // later, or -1. Null: none.
  int (*in_place_operand)(const Node& node) = nullptr;

  // Types of the results, or what is wrong with the operands or attributes.
  // Called when the operands are as many and of the roles that are declared and
  // the attributes are in their ranges; what else kernels take for granted is
  // checked here. Call it through ResultTypes (op_table.h).
  absl::StatusOr<std::vector<ValueType>> (*infer)(const Graph& graph,
                                                  const Node& node) = nullptr;
  // Computes one step. Null for a view.
  void (*reference)(const ReferenceCall& call) = nullptr;
  // Operations beyond one per result element; null for element-wise ops.
  int64_t (*operations)(const Graph& graph, const Node& node,
                        const Bounds& bounds) = nullptr;
  // Whether the node rounds to 8 bits inside: then a number in the middle
  // between two may be rounded either way, and results differ by that. Null:
  // it does not.
  bool (*rounds_inside)(const Node& node) = nullptr;
  // Rows of an operand that a step reads at most, where it need not read all of
  // them; -1: all. Null: all of every operand.
  int64_t (*rows_read)(const Graph& graph, const Node& node, int operand,
                       const Bounds& bounds) = nullptr;
};

// For element-wise ops: operand 0.
inline int FirstOperand(const Node&) { return 0; }

}  // namespace weft
