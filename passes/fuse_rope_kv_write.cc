// Keys are rotated on their way into the KV pages.
//
//   %5 = rope(%4, %positions)
//   %k1 = kv_write(%k0, %5, %positions, %sequence)
//     ->
//   %k1 = rope_kv_write(%k0, %4, %positions, %sequence)
#include "passes/pass.h"

namespace weft {

absl::Status FuseRopeKvWrite(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    Node& write = graph.node(id);
    if (write.op != "kv_write") continue;
    const NodeId rope_id = graph.ProducerOf(write.inputs[1], "rope");
    if (rope_id == kNone || graph.OnlyUser(write.inputs[1]) != id) continue;
    const Node& rope = graph.node(rope_id);
    if (rope.inputs[1] != write.inputs[2] ||
        rope.attributes.Int("head_dim") !=
            graph.value(write.inputs[0]).type.shape[2].value) {
      continue;
    }
    write.op = "rope_kv_write";
    write.inputs[1] = rope.inputs[0];
    if (rope.inputs.size() > 2) write.inputs.push_back(rope.inputs[2]);
    write.attributes = rope.attributes;
  }
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
