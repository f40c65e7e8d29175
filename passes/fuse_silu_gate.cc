// Gate and up as one product whose epilogue joins them.
//
//   %4 = matmul(%3, $gate)              %w = interleave_rows($gate, $up)
//   %5 = matmul(%3, $up)                %8 = fused_matmul(%3, %w)
//   %6 = silu(%4)               ->           epilogue="silu_gate_quantize"
//   %7 = mul(%6, %5)
//   %8 = quantize_rows(%7)
//
// Without the last line the epilogue is "silu_gate". Where the two weights
// differ in type, or their rows do not fill panels, only silu and mul become
// silu_gate.
#include "ops/fused_matmul.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Whether both are plain products of one operand with weights alike.
bool CanInterleave(const Graph& graph, NodeId a, NodeId b) {
  if (a == kNone || b == kNone || a == b) return false;
  const Node& gate = graph.node(a);
  const Node& up = graph.node(b);
  const ValueType& type = graph.value(gate.inputs[1]).type;
  return gate.inputs[0] == up.inputs[0] && gate.inputs[1] != up.inputs[1] &&
         graph.IsWeight(gate.inputs[1]) && graph.IsWeight(up.inputs[1]) &&
         type == graph.value(up.inputs[1]).type && type.layout.empty() &&
         type.shape[0].value % kPanelRows == 0 &&
         graph.OnlyUser(gate.inputs[1]) == a &&
         graph.OnlyUser(up.inputs[1]) == b;
}

void Fuse(Graph& graph, NodeId mul, NodeId gate, NodeId up) {
  const std::string name = graph.node(up).name;
  MatmulParts parts;
  parts.x = graph.node(gate).inputs[0];
  parts.epilogue = MatmulEpilogue::kSiluGate;
  const ValueId gate_weight = graph.node(gate).inputs[1];
  ValueType weight = graph.value(gate_weight).type;
  const int64_t rows = weight.shape[0].value;
  weight.shape = Shape{Dim::Number(2 * rows), weight.shape[1]};
  // The result, and the node that gives it.
  NodeId last = mul;
  const NodeId user = graph.OnlyUser(graph.node(mul).outputs[0]);
  if (user != kNone && graph.node(user).op == "quantize_rows" &&
      rows % 32 == 0) {
    parts.epilogue = MatmulEpilogue::kSiluGateQuantize;
    last = user;
  }
  const NodeId join =
      graph.AddNode("interleave_rows", {gate_weight, graph.node(up).inputs[1]},
                    {weight}, {}, name + "_gate", last);
  parts.weight = graph.node(join).outputs[0];
  SetParts(parts, kNone, kNone, kNone, &graph.node(last));
  graph.node(last).name = name + "_gate";
}

}  // namespace

absl::Status FuseSiluGate(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).erased || graph.node(id).op != "mul") continue;
    for (int side : {0, 1}) {
      const ValueId activated = graph.node(id).inputs[side];
      const ValueId other = graph.node(id).inputs[1 - side];
      const NodeId silu = graph.ProducerOf(activated, "silu");
      if (silu == kNone || graph.OnlyUser(activated) != id ||
          graph.value(other).type.shape.rank() < 2) {
        continue;
      }
      const ValueId gated = graph.node(silu).inputs[0];
      const NodeId gate = graph.ProducerOf(gated, "matmul");
      const NodeId up = graph.ProducerOf(other, "matmul");
      if (CanInterleave(graph, gate, up) && graph.OnlyUser(gated) == silu &&
          graph.OnlyUser(other) == id) {
        Fuse(graph, id, gate, up);
      } else {
        graph.node(id).op = "silu_gate";
        graph.node(id).inputs = {gated, other};
      }
      break;
    }
    graph.EraseDead();
  }
  return absl::OkStatus();
}

}  // namespace weft
