// Orders nodes so that little is alive at once.
//
// Of the nodes that are ready, the one that frees most (or adds least) runs
// next; among equals the one that stood first. That is greedy, so the model's
// own order stays where this does not lower the peak. Any order computes the
// same bits; a read of a state's version stays before the write that replaces
// it. So do gathers among each other: ranks meet in them, and each rank has
// sizes of its own to choose by.
#include <algorithm>
#include <map>

#include "base/status.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"
#include "passes/pass.h"

namespace weft {
namespace {

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph) : graph_(graph) {
    uses_.assign(graph.value_count(), 0);
    for (NodeId id : graph.order()) {
      for (ValueId input : graph.node(id).inputs) ++uses_[Root(input)];
      for (ValueId output : graph.node(id).outputs) made_by_[output] = id;
    }
    for (const auto& output : graph.outputs()) ++uses_[Root(output.second)];
    NodeId before = kNone;
    for (NodeId id : graph.order()) {
      if (!graph.node(id).Is(kAllGatherOp)) continue;
      if (before != kNone) gather_before_[id] = before;
      before = id;
    }
  }

  std::vector<NodeId> Run() {
    std::vector<NodeId> waiting = graph_.order();
    std::vector<NodeId> order;
    std::vector<bool> done(graph_.node_count(), false);
    while (!waiting.empty()) {
      auto best = waiting.end();
      int64_t least = 0;
      for (auto it = waiting.begin(); it != waiting.end(); ++it) {
        if (!Ready(*it, done)) continue;
        const int64_t growth = Growth(*it);
        if (best == waiting.end() || growth < least) {
          best = it;
          least = growth;
        }
        // Looking far ahead would pull work forward that only waits: a window
        // keeps this linear and the order near the model's.
        if (it - waiting.begin() > kWindow) break;
      }
      const NodeId id = *best;
      waiting.erase(best);
      done[id] = true;
      order.push_back(id);
      for (ValueId input : graph_.node(id).inputs) --uses_[Root(input)];
    }
    return order;
  }

 private:
  static constexpr int kWindow = 16;

  ValueId Root(ValueId value) const {
    while (true) {
      const Node* producer = graph_.Producer(value);
      if (producer == nullptr || !OpOf(*producer).view) return value;
      value = producer->inputs[0];
    }
  }

  bool Ready(NodeId id, const std::vector<bool>& done) const {
    const Node& node = graph_.node(id);
    for (ValueId input : node.inputs) {
      const auto it = made_by_.find(input);
      if (it != made_by_.end() && !done[it->second]) return false;
    }
    if (const auto before = gather_before_.find(id);
        before != gather_before_.end() && !done[before->second]) {
      return false;
    }
    if (!OpOf(node).writes_state) return true;
    // Readers of the old version first.
    for (NodeId reader : graph_.Users(node.inputs[0])) {
      if (reader != id && !done[reader]) return false;
    }
    return true;
  }

  int64_t Bytes(ValueId value) const {
    const Value& v = graph_.value(value);
    if (v.kind != ValueKind::kTemporary || graph_.IsOutput(value) ||
        IsStateVersion(graph_, value)) {
      return 0;
    }
    return StorageBytes(v.type, graph_.bounds);
  }

  int64_t Growth(NodeId id) const {
    const Node& node = graph_.node(id);
    const OpDef& op = OpOf(node);
    int64_t growth = 0;
    if (!op.view) {
      for (ValueId output : node.outputs) growth += Bytes(output);
    }
    std::map<ValueId, int> reads;
    for (ValueId input : node.inputs) ++reads[Root(input)];
    for (const auto& [root, count] : reads) {
      if (uses_[root] == count) growth -= Bytes(root);
    }
    return growth;
  }

  const Graph& graph_;
  std::vector<int> uses_;
  std::map<ValueId, NodeId> made_by_;
  std::map<NodeId, NodeId> gather_before_;
};

// The most bytes alive in one step, sharing and scratch included.
absl::StatusOr<int64_t> Peak(const Graph& graph) {
  WEFT_ASSIGN_OR_RETURN(BufferPlan plan, PlanArena(LifetimesOf(graph).records,
                                                   PlanStrategy::kNoReuse));
  return plan.lower_bound;
}

}  // namespace

absl::Status Schedule(Graph& graph, const PassOptions&) {
  absl::StatusOr<int64_t> peak = Peak(graph);
  if (!peak.ok()) return peak.status();
  // The order it begins with decides among equals: what it found may lead to
  // something better still.
  while (true) {
    const std::vector<NodeId> order = graph.order();
    graph.SetOrder(Scheduler(graph).Run());
    WEFT_ASSIGN_OR_RETURN(const int64_t after, Peak(graph));
    if (after >= *peak) {
      graph.SetOrder(order);
      return absl::OkStatus();
    }
    peak = after;
  }
}

}  // namespace weft
