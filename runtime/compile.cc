#include "runtime/compile.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "passes/check_plan.h"
#include "passes/lifetimes.h"
#include "runtime/arena.h"

namespace weft {
namespace {

// Without choose-kernels: the plainest kernel that sums in the right order.
void TakePlainKernels(Graph& graph, const PassOptions& options) {
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (OpOf(node).view) continue;
    const KernelChoice choice = ChooseKernel({graph, node, options.kernels},
                                             KernelPreference::kPlainest);
    node.attributes.Set("kernel", choice.row->name());
  }
}

absl::Status VerifyBucket(const Graph& graph, const CompileOptions& options) {
  if (absl::Status s = VerifyGraph(graph); !s.ok()) return s;
  const auto error = [](const Node& node, absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("illegal plan: ", node.op, " (", node.name, "): ", what));
  };
  const Isa machine = DetectIsa();
  const Isa cap = Includes(machine, options.isa) ? options.isa : machine;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (OpOf(node).view) continue;
    const std::string name = node.attributes.String("kernel");
    const KernelRow* row = FindKernel(name);
    if (row == nullptr) return error(node, absl::StrCat("no kernel ", name));
    if (!Includes(cap, row->isa())) {
      return error(node, absl::StrCat("kernel ", name, " needs ",
                                      Name(row->isa()), ", this machine has ",
                                      Name(cap), ": compile it here"));
    }
    const NodeView view = {graph, node, {cap}};
    if (!row->Computes(node)) {
      return error(node, absl::StrCat("kernel ", name, " is for ", row->op()));
    }
    if (std::string why = row->Refuses(view); !why.empty()) {
      return error(node, absl::StrCat("kernel ", name, " refuses: ", why));
    }
    if (row->ScratchBytes(view) > 0 && node.scratch_offset < 0) {
      return error(node, "scratch memory has no place");
    }
  }
  const Lifetimes lifetimes = LifetimesOf(graph);
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < lifetimes.records.size(); ++i) {
    offsets.push_back(lifetimes.values[i] != kNone
                          ? graph.value(lifetimes.values[i]).offset
                          : graph.node(lifetimes.nodes[i]).scratch_offset);
  }
  if (absl::Status s = CheckPlan(lifetimes.records, offsets, graph.arena.bytes);
      !s.ok()) {
    return s;
  }
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!OpOf(node).view || !InArena(graph, node.outputs[0])) continue;
    const ViewOf view = RootOf(graph, node.outputs[0]);
    if (graph.value(node.outputs[0]).offset !=
        graph.value(view.root).offset + view.byte_offset) {
      return error(node, "view is not inside its parent");
    }
  }
  return absl::OkStatus();
}

// The summation order of each product, by the node's name: it must be the same
// in all buckets.
absl::Status CheckOrders(const Plan& plan) {
  std::map<std::string, std::string> orders;
  for (const Graph& graph : plan.buckets) {
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const KernelRow* row = FindKernel(node.attributes.String("kernel"));
      if (row == nullptr) continue;
      const std::string key = absl::StrCat(node.op, " ", node.name);
      const auto it = orders.emplace(key, row->summation()).first;
      if (it->second != row->summation()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "illegal plan: ", key, ": kernel ", row->name(),
            " sums in another order than the one for other token counts"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Compile(Graph graph, const CompileOptions& options,
                             const PassObserver& observer,
                             const std::string& stop_after) {
  for (const std::string& name : options.disabled_passes) {
    if (absl::Status s = CheckPassName(name); !s.ok()) return s;
  }
  PipelineOptions pipeline;
  pipeline.passes.kernels.isa = options.isa;
  pipeline.passes.planner = options.planner;
  pipeline.disabled = options.disabled_passes;
  pipeline.stop_after = stop_after;

  Plan plan;
  plan.options = options;
  plan.nodes_before = static_cast<int>(graph.order().size());
  bool stopped = false;
  if (observer) {
    pipeline.observe = [&](const std::string& pass, const Graph& g) {
      observer(pass, 0, g);
    };
  }
  graph.bounds.tokens = graph.bounds.rows = options.buckets.back();
  if (absl::Status s =
          RunPasses(graph, false, pipeline, &plan.passes, &stopped);
      !s.ok()) {
    return s;
  }
  graph = graph.Compact();
  for (int64_t tokens : options.buckets) {
    Graph bucket = graph;
    bucket.bounds.tokens = bucket.bounds.rows = tokens;
    if (observer) {
      pipeline.observe = [&, tokens](const std::string& pass, const Graph& g) {
        observer(pass, tokens, g);
      };
    }
    const bool last = tokens == options.buckets.back();
    if (options.disabled_passes.count("choose-kernels") > 0) {
      TakePlainKernels(bucket, pipeline.passes);
    }
    if (!stopped) {
      bool stopped_here = false;
      if (absl::Status s =
              RunPasses(bucket, true, pipeline, last ? &plan.passes : nullptr,
                        &stopped_here);
          !s.ok()) {
        return s;
      }
    }
    if (stop_after.empty() && bucket.arena.bytes < 0) {
      // Without plan-buffers: every value a place of its own.
      PassOptions plain = pipeline.passes;
      plain.planner = PlanStrategy::kNoReuse;
      if (absl::Status s = PlaceBuffers(bucket, plain); !s.ok()) return s;
    }
    plan.buckets.push_back(bucket.Compact());
  }
  if (!stop_after.empty()) return plan;
  if (absl::Status s = VerifyPlan(plan); !s.ok()) return s;
  return plan;
}

absl::Status VerifyPlan(const Plan& plan) {
  if (plan.buckets.empty()) {
    return absl::InvalidArgumentError("illegal plan: it has no graph");
  }
  for (const Graph& graph : plan.buckets) {
    if (absl::Status s = VerifyBucket(graph, plan.options); !s.ok()) return s;
  }
  return CheckOrders(plan);
}

absl::Status MakeWeights(Plan& plan, ThreadPool& threads, bool huge_pages,
                         const Progress& progress) {
  // Buckets share weights by name: each is made once.
  struct Job {
    const std::function<void(uint8_t*)>* make;
    int64_t offset;
    int64_t bytes;
  };
  std::map<std::string, Job> jobs;
  std::vector<Job> order;
  int64_t total = 0;
  const Graph first = plan.buckets.front();  // keeps the functions alive
  for (ValueId id = 0; id < first.value_count(); ++id) {
    const Value& value = first.value(id);
    if (value.kind != ValueKind::kWeight || value.data.make == nullptr) {
      continue;
    }
    const Job job = {&value.data.make, total, value.data.made_bytes};
    jobs.emplace(value.name, job);
    order.push_back(job);
    total += (value.data.made_bytes + 63) / 64 * 64;
  }
  if (order.empty()) return absl::OkStatus();
  absl::StatusOr<Arena> arena = Arena::Create(total, "weights", huge_pages);
  if (!arena.ok()) return arena.status();
  auto memory = std::make_shared<Arena>(*std::move(arena));
  int64_t done = 0;
  // In groups, so that progress is told from this thread.
  const int64_t group = std::max<int64_t>(4 * threads.threads(), 1);
  for (size_t begin = 0; begin < order.size(); begin += group) {
    const int64_t n = std::min<int64_t>(group, order.size() - begin);
    threads.ParallelFor(n, [&](int64_t from, int64_t to, int) {
      for (int64_t i = from; i < to; ++i) {
        const Job& job = order[begin + i];
        (*job.make)(memory->data() + job.offset);
      }
    });
    for (int64_t i = 0; i < n; ++i) done += order[begin + i].bytes;
    if (progress) progress(static_cast<double>(done) / total);
  }
  for (Graph& graph : plan.buckets) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      Value& value = graph.value(id);
      if (value.kind != ValueKind::kWeight || value.data.make == nullptr) {
        continue;
      }
      const Job& job = jobs.at(value.name);
      value.data = WeightData();
      value.data.bytes =
          absl::MakeConstSpan(memory->data() + job.offset, job.bytes);
      value.data.owner = memory;
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
