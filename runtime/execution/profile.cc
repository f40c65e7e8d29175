#include "runtime/execution/profile.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/listing.h"
#include "ops/experts.h"
#include "ops/fused_matmul.h"

namespace weft {
namespace {

// What a row of this grouping is called, and its place among others.
struct Group {
  int block;  // blocks only; else 0
  std::string name, kernel;

  bool operator<(const Group& other) const {
    return std::tie(block, name, kernel) <
           std::tie(other.block, other.name, other.kernel);
  }
};

Group GroupOf(const Node& node, ProfileBy by) {
  const std::string kernel = node.kernel;
  switch (by) {
    case ProfileBy::kOp:
      return {0, node.op->name, kernel};
    case ProfileBy::kNode:
      return {0, LabelOf(node), kernel};
    case ProfileBy::kBlock:
      break;
  }
  const int block = BlockOf(node.name);
  if (block < 0) return {1 << 30, node.op->name, ""};
  return {block, absl::StrCat("blk.", block), ""};
}

}  // namespace

double Profiler::Now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                       began_)
      .count();
}

void Profiler::BeginStep(std::string phase, const Graph& graph,
                         const Bounds& bounds) {
  StepTime step;
  step.phase = std::move(phase);
  step.graph = &graph;
  step.bounds = bounds;
  // Before the clock starts: the nodes' own times shall not hold a growing
  // list's.
  step.nodes.reserve(graph.order().size());
  // A thread has a few ranges of each node; seldom more than these.
  for (Lane& lane : lanes_) {
    const size_t wanted = lane.ranges.size() + 8 * graph.order().size();
    if (lane.ranges.capacity() < wanted) lane.ranges.reserve(2 * wanted);
  }
  steps_.push_back(std::move(step));
  steps_.back().start = Now();
}

void Profiler::EndStep() {
  steps_.back().seconds = Now() - steps_.back().start;
}

void Profiler::Before(const Graph&, NodeId node, const KernelCall&) {
  steps_.back().nodes.push_back({node, Now(), 0});
}

void Profiler::After(const Graph&, NodeId, const KernelCall&) {
  NodeTime& time = steps_.back().nodes.back();
  time.seconds = Now() - time.start;
}

void Profiler::BeginRange(int thread) {
  if (lanes_.empty()) return;
  const StepTime& step = steps_.back();
  lanes_[thread].ranges.push_back(
      {step.graph, step.nodes.back().node, Now(), 0});
}

void Profiler::EndRange(int thread) {
  if (lanes_.empty()) return;
  RangeTime& range = lanes_[thread].ranges.back();
  range.seconds = Now() - range.start;
}

const char* Name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kInt8:
      return "int8";
    case Arithmetic::kTileInt8:
      return "tile int8";
    case Arithmetic::kBF16:
      return "bf16";
    case Arithmetic::kF32:
      break;
  }
  return "f32";
}

Arithmetic ArithmeticOf(const Graph& graph, const Node& node) {
  if (!IsProduct(node)) {
    return absl::StrContains(node.kernel, "avx512bf16") ? Arithmetic::kBF16
                                                        : Arithmetic::kF32;
  }
  const bool rounds = IsMatmul(node) && PartsOf(node).quantize;
  if (rounds || graph.value(node.inputs[0]).type.dtype == DType::kQ8Rows) {
    return absl::StrContains(node.kernel, "avx512amx") ? Arithmetic::kTileInt8
                                                       : Arithmetic::kInt8;
  }
  return absl::StrContains(graph.value(node.inputs[1]).type.layout, "bf16")
             ? Arithmetic::kBF16
             : Arithmetic::kF32;
}

double PeakOf(Arithmetic arithmetic, const Limits& limits) {
  switch (arithmetic) {
    case Arithmetic::kInt8:
      return limits.int8_ops;
    case Arithmetic::kTileInt8:
      return limits.tile_int8_ops;
    case Arithmetic::kBF16:
      return limits.bf16_flops;
    case Arithmetic::kF32:
      break;
  }
  return limits.f32_flops;
}

std::vector<ProfileRow> Summarize(const std::vector<StepTime>& steps,
                                  const std::string& phase, ProfileBy by,
                                  const Limits& limits) {
  std::map<Group, ProfileRow> groups;
  for (const StepTime& step : steps) {
    if (step.phase != phase) continue;
    for (const NodeTime& time : step.nodes) {
      const Node& node = step.graph->node(time.node);
      const Group group = GroupOf(node, by);
      ProfileRow& row = groups[group];
      row.name = group.name;
      row.kernel = group.kernel;
      const Cost cost = NodeCost(*step.graph, node, step.bounds);
      ++row.count;
      row.seconds += time.seconds;
      row.bytes += cost.bytes;
      row.operations += cost.operations;
      const double peak = PeakOf(ArithmeticOf(*step.graph, node), limits);
      if (peak > 0) row.arithmetic_seconds += cost.operations / peak;
      if (limits.read_bytes_per_second > 0) {
        row.memory_seconds += cost.bytes / limits.read_bytes_per_second;
      }
    }
  }
  std::vector<ProfileRow> rows;
  for (auto& [group, row] : groups) rows.push_back(std::move(row));
  if (by != ProfileBy::kBlock) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ProfileRow& a, const ProfileRow& b) {
                       return a.seconds > b.seconds;
                     });
  }
  return rows;
}

}  // namespace weft
