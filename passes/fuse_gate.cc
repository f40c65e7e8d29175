#include "passes/fuse_gate.h"

#include "ops/experts.h"
#include "ops/ops.h"
#include "passes/insert_before.h"

namespace weft {
namespace {

// What was found: two products of x, or one whose halves are gate and up.
struct Products {
  ValueId x = kNone;
  ValueId gate = kNone;
  ValueId up = kNone;  // kNone: gate has both, one below the other
  ValueId gate_bias = kNone;
  ValueId up_bias = kNone;
  ValueId ids = kNone;  // of experts
  NodeId product = kNone;
};

// What this gate becomes, by its last node and with its rounding or without.
struct Target {
  NodeId last;
  MatmulEpilogue epilogue;
  int block;  // the result has whole blocks of so many columns
};

int64_t ExpertsOf(const Graph& graph, const Products& found) {
  return found.ids == kNone ? 1
                            : graph.node(found.product)
                                  .attributes.As<ExpertMatmulAttributes>()
                                  .experts;
}

// Whether the rows of both, of each expert, can alternate panel by panel.
bool CanInterleave(const Graph& graph, const Products& found, int block) {
  const ValueType& gate = graph.value(found.gate).type;
  int64_t rows = gate.shape[0].value / ExpertsOf(graph, found);
  if (found.up == kNone) {
    if (rows % 2 != 0) return false;
    rows /= 2;
  } else if (!(gate == graph.value(found.up).type)) {
    return false;
  }
  return gate.layout.empty() && rows % kPanelRows == 0 && rows % block == 0;
}

void Fuse(Graph& graph, const Products& found, const Target& target,
          const GateParts& gate) {
  const std::string name = graph.node(found.product).name + "_gate";
  Node interleave(kInterleaveRowsOp, {found.gate}, {}, name);
  if (found.up != kNone) interleave.inputs.push_back(found.up);
  const ValueId weight = InsertBefore(graph, target.last, interleave);
  const ValueId bias = found.gate_bias == kNone
                           ? kNone
                           : InsertBefore(graph, target.last,
                                          Node(kInterleaveRowsOp,
                                               {found.gate_bias, found.up_bias},
                                               {}, name + "_bias"));
  const int64_t experts = ExpertsOf(graph, found);
  Node& fused = graph.node(target.last);
  fused.name = name;
  if (found.ids == kNone) {
    MatmulParts parts;
    parts.x = found.x;
    parts.weight = weight;
    parts.epilogue = target.epilogue;
    parts.gate = gate;
    MatmulOperands operands;
    operands.bias = bias;
    SetParts(parts, operands, &fused);
    return;
  }
  fused.Become(kFusedExpertMatmulOp,
               FusedExpertMatmulAttributes{
                   experts, FusedEpilogueOf({target.epilogue, gate.activation}),
                   gate.limit, gate.slope});
  fused.inputs = {found.x, weight, found.ids};
  if (bias != kNone) fused.inputs.push_back(bias);
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

struct ProductPattern {
  Pattern x;
  ValueId* weight;
  ValueId* bias;  // null: none
  Pattern ids;    // captures `chosen`, or is it
  const ValueId* chosen;
};

Pattern ProductOf(ProductPattern p, bool experts, NodeId* product) {
  const Pattern weight = Once(Any(p.weight));
  const Pattern plain =
      experts ? Op(kExpertMatmulOp, {std::move(p.x), weight, std::move(p.ids)},
                   product)
              : Op(kMatmulOp, {std::move(p.x), weight}, product);
  if (p.bias == nullptr) return Once(plain);
  return Once(experts
                  ? Op(kExpertAddOp, {Once(plain), Any(p.bias), Same(p.chosen)})
                  : Op(kAddOp, {Once(plain), Vector(p.bias)}));
}

}  // namespace

Pattern MulOfActivation(bool (*is)(const Node& node), Pattern gate, Pattern up,
                        NodeId* node) {
  return EitherOrder(
      Op(kMulOp, {Once(OpThat(is, {std::move(gate)})), std::move(up)}, node));
}

void FuseGate(const Gate& gate, Graph* graph) {
  Products found;
  NodeId root;
  // With and without the rounding of the result.
  const auto fuse_both = [&](const Pattern& joined, const auto& holds) {
    const auto fuse = [&](const Target& target) {
      if (holds() && CanInterleave(*graph, found, target.block)) {
        Fuse(*graph, found, target, gate.parts(graph->node(root)));
      }
    };
    ForEachMatch(*graph, Op(kQuantizeRowsOp, {Once(joined)}), [&](NodeId id) {
      fuse({id, MatmulEpilogue::kGateQuantize, 32});
    });
    ForEachMatch(*graph, joined, [&](NodeId id) {
      fuse({id, MatmulEpilogue::kGate, 1});
    });
  };

  for (const bool experts : {false, true}) {
    for (const bool biased : {true, false}) {
      found = Products();
      const Pattern first = ProductOf(
          {Any(&found.x), &found.gate, biased ? &found.gate_bias : nullptr,
           Any(&found.ids), &found.ids},
          experts, &found.product);
      const Pattern second = ProductOf(
          {Same(&found.x), &found.up, biased ? &found.up_bias : nullptr,
           Same(&found.ids), &found.ids},
          experts, &found.product);
      fuse_both(gate.joined(first, second, &root), [] { return true; });
    }
  }

  // One product, whose halves they are.
  found = Products();
  NodeId first, second;
  ValueId whole;
  const Pattern both = Op(kSliceOp, {Any(&whole)}, &first);
  const Pattern rest_of_both = Op(kSliceOp, {Same(&whole)}, &second);
  fuse_both(gate.joined(Once(both), Once(rest_of_both), &root), [&] {
    found.product = graph->value(whole).producer;
    return found.product != kNone && AreHalves(*graph, first, second) &&
           !graph->IsOutput(whole) && graph->Users(whole).size() == 2 &&
           Match(*graph, found.product,
                 Op(kMatmulOp, {Any(&found.x), Once(Weight(&found.gate))}));
  });

  if (gate.rest == nullptr) return;
  ValueId gated, other;
  ForEachMatch(*graph, gate.joined(Any(&gated), Rows(&other), &root),
               [&](NodeId id) {
                 graph->node(id).Become(*gate.rest);
                 graph->node(id).inputs = {gated, other};
               });
}

}  // namespace weft
