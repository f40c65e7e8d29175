// Keys are rotated on their way into the KV pages.
//
//   %5 = rope(%4, %positions)
//   %k1 = kv_write(%k0, %5, %positions, %sequence)
//     ->
//   %k1 = rope_kv_write(%k0, %4, %positions, %sequence)
#include "ops/ops.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseRopeKvWrite(Graph& graph, const PassOptions&) {
  ValueId pages, keys, positions;
  NodeId rope_id;
  const Pattern rotated = Op(kRopeOp, {Any(&keys), Any(&positions)}, &rope_id);
  const Pattern written =
      Op(kKvWriteOp, {Any(&pages), Once(rotated), Same(&positions)});
  ForEachMatch(graph, written, [&](NodeId id) {
    const Node& rope = graph.node(rope_id);
    if (rope.attributes.As<RopeAttributes>().head_dim !=
        graph.value(pages).type.shape[2].value) {
      return;
    }
    Node& write = graph.node(id);
    write.Become(kRopeKvWriteOp, rope.attributes);
    write.inputs[1] = keys;
    if (rope.inputs.size() > 2) write.inputs.push_back(rope.inputs[2]);
  });
  return absl::OkStatus();
}

}  // namespace weft
