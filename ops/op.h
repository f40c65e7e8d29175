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

// What the numbers of an integer operand are. Kernels use them unchecked: who
// runs a graph sees to their range, by this.
enum class IndexKind : uint8_t {
  kRowOf,     // a row of another operand: below its first dimension
  kPosition,  // below the context
  kSequence,  // a slot of the KV cache
  kChosen,    // made by a node of the graph, in range by the op's own rule
  kAny,       // no index
};

struct IndexOperand {
  int operand;
  IndexKind kind;
  int of = -1;  // kRowOf: the operand whose rows they are
};

struct OpDef {
  const char* name;
  // Loaders may emit it; the others are made by passes.
  bool primitive = false;
  // Result 0 is a window into operand 0: no bytes of its own.
  bool view = false;
  // The operand whose memory result 0 may take when nothing else reads it
  // later, or -1. Null: none.
  int (*in_place_operand)(const Node& node) = nullptr;
  // Result 0 is a new version of the state operand 0.
  bool writes_state = false;

  // Types of the results, or what is wrong with the operands or attributes.
  absl::StatusOr<std::vector<ValueType>> (*infer)(const Graph& graph,
                                                  const Node& node) = nullptr;
  void (*reference)(const ReferenceCall& call) = nullptr;
  // Operations beyond one per result element; null for element-wise ops.
  int64_t (*operations)(const Graph& graph, const Node& node,
                        const Bounds& bounds) = nullptr;
  // Every integer operand that a node may have. One that is not here makes the
  // graph one that cannot run.
  absl::Span<const IndexOperand> index_operands = {};
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
