#include "passes/fuse_gate.h"

#include "ops/fused_matmul.h"
#include "ops/ops.h"
#include "passes/insert_before.h"

namespace weft {
namespace {

// Two weights with equal numbers of rows, or one whose halves they are.
struct GateWeights {
  ValueId gate = kNone;
  ValueId up = kNone;  // kNone: gate has both, one below the other
};

// Whether the rows of both can alternate panel by panel, and the result has
// whole blocks of so many columns.
bool CanInterleave(const Graph& graph, const GateWeights& weights, int block) {
  const ValueType& gate = graph.value(weights.gate).type;
  int64_t rows = gate.shape[0].value;
  if (weights.up == kNone) {
    if (rows % 2 != 0) return false;
    rows /= 2;
  } else if (!(gate == graph.value(weights.up).type)) {
    return false;
  }
  return gate.layout.empty() && rows % kPanelRows == 0 && rows % block == 0;
}

// Makes `last` the product of x with both.
void Fuse(Graph* graph, NodeId last, ValueId x, const GateWeights& weights,
          const std::string& name, MatmulEpilogue epilogue,
          GateActivation activation) {
  Node interleave(kInterleaveRowsOp, {weights.gate}, {}, name);
  if (weights.up != kNone) interleave.inputs.push_back(weights.up);
  MatmulParts parts;
  parts.x = x;
  parts.weight = InsertBefore(*graph, last, interleave);
  parts.epilogue = epilogue;
  parts.activation = activation;
  SetParts(parts, {}, &graph->node(last));
  graph->node(last).name = name;
}

// Whether the two slices are the first and the second half of what they are
// cut from, in this order.
bool AreHalves(const Graph& graph, NodeId first, NodeId second) {
  const auto a = graph.node(first).attributes.As<SliceAttributes>();
  const auto b = graph.node(second).attributes.As<SliceAttributes>();
  const ValueId whole = graph.node(first).inputs[0];
  return a.begin == 0 && b.begin == a.size && a.size == b.size &&
         graph.value(whole).type.shape[1].value == 2 * a.size;
}

}  // namespace

void FuseGate(const Gate& gate, Graph* graph) {
  ValueId x, gated, other;
  GateWeights weights;
  NodeId product;
  const auto active = [&gate](Pattern operand) {
    return Once(OpThat(gate.is_activation, {std::move(operand)}));
  };
  const auto fuse = [&](NodeId last, MatmulEpilogue epilogue, int block) {
    if (CanInterleave(*graph, weights, block)) {
      Fuse(graph, last, x, weights, graph->node(product).name + "_gate",
           epilogue, gate.activation);
    }
  };
  // With and without the rounding of the result.
  const auto fuse_both = [&](const Pattern& joined, const auto& holds) {
    ForEachMatch(*graph, Op(kQuantizeRowsOp, {Once(joined)}), [&](NodeId id) {
      if (holds()) fuse(id, MatmulEpilogue::kGateQuantize, 32);
    });
    ForEachMatch(*graph, joined, [&](NodeId id) {
      if (holds()) fuse(id, MatmulEpilogue::kGate, 1);
    });
  };

  const Pattern gate_product =
      Once(Op(kMatmulOp, {Any(&x), Once(Weight(&weights.gate))}));
  const Pattern up_product =
      Once(Op(kMatmulOp, {Same(&x), Once(Weight(&weights.up))}, &product));
  fuse_both(EitherOrder(Op(kMulOp, {active(gate_product), up_product})),
            [] { return true; });

  // One product, whose halves they are.
  NodeId first, second;
  ValueId whole;
  weights.up = kNone;
  const Pattern both = Op(kSliceOp, {Any(&whole)}, &first);
  const Pattern rest_of_both = Op(kSliceOp, {Same(&whole)}, &second);
  fuse_both(
      EitherOrder(Op(kMulOp, {active(Once(both)), Once(rest_of_both)})), [&] {
        product = graph->value(whole).producer;
        if (product == kNone || !AreHalves(*graph, first, second) ||
            graph->IsOutput(whole) || graph->Users(whole).size() != 2 ||
            !Match(*graph, product,
                   Op(kMatmulOp, {Any(&x), Once(Weight(&weights.gate))}))) {
          return false;
        }
        return true;
      });

  const Pattern rest =
      EitherOrder(Op(kMulOp, {active(Any(&gated)), Rows(&other)}));
  ForEachMatch(*graph, rest, [&](NodeId id) {
    graph->node(id).Become(*gate.op);
    graph->node(id).inputs = {gated, other};
  });
}

}  // namespace weft
