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
#include "passes/insert_before.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Whether the rows of both can alternate panel by panel, and the result has
// whole blocks of so many columns.
bool CanInterleave(const ValueType& gate, const ValueType& up, int block) {
  const int64_t rows = gate.shape[0].value;
  return gate == up && gate.layout.empty() && rows % kPanelRows == 0 &&
         rows % block == 0;
}

// Makes `last` the product of x with both.
void Fuse(Graph& graph, NodeId last, ValueId x, ValueId gate, ValueId up,
          const std::string& name, MatmulEpilogue epilogue) {
  MatmulParts parts;
  parts.x = x;
  parts.weight = InsertBefore(
      graph, last, Node{"interleave_rows", {gate, up}, {}, {}, name});
  parts.epilogue = epilogue;
  SetParts(parts, kNone, kNone, kNone, &graph.node(last));
  graph.node(last).name = name;
}

}  // namespace

absl::Status FuseSiluGate(Graph& graph, const PassOptions&) {
  ValueId x, gate, up, gated, other;
  NodeId up_id;
  const Pattern gate_product =
      Once(Op("matmul", {Any(&x), Once(Weight(&gate))}));
  const Pattern up_product =
      Once(Op("matmul", {Same(&x), Once(Weight(&up))}, &up_id));
  const Pattern products =
      EitherOrder(Op("mul", {Once(Op("silu", {gate_product})), up_product}));
  const auto fuse = [&](NodeId last, MatmulEpilogue epilogue, int block) {
    if (CanInterleave(graph.value(gate).type, graph.value(up).type, block)) {
      Fuse(graph, last, x, gate, up, graph.node(up_id).name + "_gate",
           epilogue);
    }
  };
  ForEachMatch(graph, Op("quantize_rows", {Once(products)}), [&](NodeId id) {
    fuse(id, MatmulEpilogue::kSiluGateQuantize, 32);
  });
  ForEachMatch(graph, products,
               [&](NodeId id) { fuse(id, MatmulEpilogue::kSiluGate, 1); });
  const Pattern rest =
      EitherOrder(Op("mul", {Once(Op("silu", {Any(&gated)})), Rows(&other)}));
  ForEachMatch(graph, rest, [&](NodeId id) {
    graph.node(id).op = "silu_gate";
    graph.node(id).inputs = {gated, other};
  });
  return absl::OkStatus();
}

}  // namespace weft
