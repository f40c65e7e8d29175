#include "passes/lifetimes.h"

#include <algorithm>

#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/storage.h"

namespace weft {
namespace {

int64_t ScratchBytes(const Graph& graph, const Node& node) {
  const KernelEntry* entry = FindKernel(node.kernel);
  return entry == nullptr ? 0 : entry->ScratchBytes({graph, node, {}});
}

}  // namespace

ViewOf RootOf(const Graph& graph, ValueId value) {
  ViewOf view = {value, 0};
  while (true) {
    const Node* producer = graph.Producer(view.root);
    if (producer == nullptr || !OpOf(*producer).view) return view;
    view.byte_offset += producer->attributes.As<SliceAttributes>().begin *
                        Info(graph.value(view.root).type.dtype).block_bytes;
    view.root = producer->inputs[0];
  }
}

bool InArena(const Graph& graph, ValueId value) {
  const ValueId root = RootOf(graph, value).root;
  return graph.value(root).kind == ValueKind::kTemporary &&
         !graph.IsOutput(root) && !IsStateVersion(graph, root);
}

Lifetimes LifetimesOf(const Graph& graph) {
  const std::vector<NodeId>& order = graph.order();
  std::vector<int32_t> last(graph.value_count(), -1);
  for (size_t step = 0; step < order.size(); ++step) {
    for (ValueId input : graph.node(order[step]).inputs) {
      last[RootOf(graph, input).root] = static_cast<int32_t>(step);
    }
  }
  Lifetimes result;
  std::vector<int32_t> record_of(graph.value_count(), -1);
  const auto add = [&](Lifetime record, ValueId value, NodeId node) {
    result.records.push_back(record);
    result.values.push_back(value);
    result.nodes.push_back(node);
  };
  for (size_t at = 0; at < order.size(); ++at) {
    const int32_t step = static_cast<int32_t>(at);
    const Node& node = graph.node(order[at]);
    const OpDef& op = OpOf(node);
    if (!op.view) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId output = node.outputs[i];
        // New versions of states have no bytes of their own.
        if (graph.IsOutput(output) || IsStateVersion(graph, output)) continue;
        Lifetime record;
        record.first = step;
        record.last = std::max(step, last[output]);
        record.bytes = StorageBytes(graph.value(output).type, graph.bounds);
        const int operand = i == 0 && op.in_place_operand != nullptr
                                ? op.in_place_operand(node)
                                : -1;
        if (operand >= 0) {
          const ValueId input = node.inputs[operand];
          // The operand must be a whole value of the same type, read here for
          // the last time and once.
          const auto reads = std::count_if(
              node.inputs.begin(), node.inputs.end(), [&](ValueId other) {
                return RootOf(graph, other).root == input;
              });
          if (record_of[input] >= 0 && last[input] == step && reads == 1 &&
              graph.value(input).type == graph.value(output).type) {
            record.share = record_of[input];
          }
        }
        record_of[output] = static_cast<int32_t>(result.records.size());
        add(record, output, kNone);
      }
    }
    const int64_t scratch = ScratchBytes(graph, node);
    if (scratch > 0) add({step, step, scratch, -1}, kNone, order[at]);
  }
  return result;
}

}  // namespace weft
