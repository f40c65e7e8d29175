#include "runtime/plan.h"

#include <algorithm>

#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/storage.h"

namespace weft {

int64_t AlignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

const Graph& Plan::BucketFor(int64_t tokens) const {
  for (const Graph& graph : buckets) {
    if (graph.bounds.tokens >= tokens) return graph;
  }
  return buckets.back();
}

std::vector<int64_t> StatePageBytes(const Graph& graph) {
  std::vector<int64_t> bytes;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).kind == ValueKind::kState) {
      bytes.push_back(AlignedBytes(KvPageBytes(graph.value(id).type)));
    }
  }
  return bytes;
}

PlanMemory MemoryOf(const Plan& plan, int sequences, int64_t logit_rows) {
  PlanMemory memory;
  const Graph& last = plan.buckets.back();
  for (ValueId id = 0; id < last.value_count(); ++id) {
    const Value& value = last.value(id);
    if (value.kind != ValueKind::kWeight) continue;
    memory.weights += AlignedBytes(StorageBytes(value.type, last.bounds));
    ValueType plain = value.type;
    plain.layout.clear();
    memory.source_weights += StorageBytes(plain, last.bounds);
  }
  for (const Graph& graph : plan.buckets) {
    memory.arena = std::max(memory.arena, graph.arena.bytes);
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const KernelRow* row = FindKernel(node.attributes.String("kernel"));
      if (row == nullptr) continue;
      memory.thread_scratch =
          std::max(memory.thread_scratch,
                   AlignedBytes(row->ThreadScratchBytes({graph, node, {}})));
    }
  }
  int64_t page = 0;
  for (int64_t bytes : StatePageBytes(last)) page += bytes;
  memory.kv_per_token = page / kPageTokens;
  memory.kv =
      page * ((plan.context() + kPageTokens - 1) / kPageTokens) * sequences;
  memory.logits = logit_rows * plan.model.vocabulary_size * 4;
  memory.tokenizer = static_cast<int64_t>(plan.vocabulary.ByteSizeLong()) * 3;
  return memory;
}

}  // namespace weft
