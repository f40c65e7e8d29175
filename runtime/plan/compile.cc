#include "runtime/plan/compile.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "runtime/machine/arena.h"
#include "runtime/plan/large_tables.h"
#include "runtime/plan/verify_plan.h"

namespace weft {
namespace {

// Without choose-kernels: the plainest kernel that sums in the right order.
void TakePlainKernels(Graph& graph, const PassOptions& options) {
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (OpOf(node).view) continue;
    const KernelChoice choice = ChooseKernel({graph, node, options.kernels},
                                             KernelPreference::kPlainest);
    node.kernel = choice.entry->name();
  }
}

// Brings what stays in the model file, such as an embedding table, into memory
// front to back: else its rows would come page by page, with the tokens. So
// come those of large tables, without their neighbours.
void ReadMapped(const Graph& graph) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const WeightData& data = graph.value(id).data;
    if (!data.mapped || data.make != nullptr || data.bytes.empty()) continue;
    const uintptr_t first = reinterpret_cast<uintptr_t>(data.bytes.data());
    const uintptr_t begin = first / page * page;
    // Where the system cannot (before Linux 5.14), they come later.
    madvise(reinterpret_cast<void*>(begin), first + data.bytes.size() - begin,
            StaysInFile(graph, id) ? MADV_RANDOM : MADV_POPULATE_READ);
  }
}

// Weights that lie in a file become ones that are made, by copying. Where
// experts are streamed, since memory is short, so that what stays is really in
// memory, other pages of the file are given back, and large tables stay there.
void CopyFromFiles(Plan& plan) {
  const bool streams = !plan.streamed.empty();
  for (Graph* graph : plan.AllGraphs()) {
    for (ValueId id = 0; id < graph->value_count(); ++id) {
      Value& value = graph->value(id);
      if (value.kind != ValueKind::kWeight || value.data.make != nullptr ||
          value.data.bytes.empty() || plan.Streams(value.name) ||
          (streams && StaysInFile(*graph, id))) {
        continue;
      }
      value.data.mapped = value.data.mapped || streams;
      value.data.made_bytes = static_cast<int64_t>(value.data.bytes.size());
      value.data.make = [source = value.data](uint8_t* out) {
        std::memcpy(out, source.bytes.data(), source.bytes.size());
        if (source.mapped) ReleasePages(source.bytes);
      };
    }
  }
}

// Keeps the files that a weight still lies in; apart, the one that experts are
// streamed from.
void ForgetUnusedFiles(Plan& plan) {
  std::set<const void*> used;
  for (const Graph* graph : plan.AllGraphs()) {
    for (ValueId id = 0; id < graph->value_count(); ++id) {
      const Value& value = graph->value(id);
      if (plan.Streams(value.name)) continue;
      used.insert(value.data.owner.get());
    }
  }
  if (!plan.streamed.empty()) plan.streamed_file = plan.files.front();
  plan.files.erase(std::remove_if(plan.files.begin(), plan.files.end(),
                                  [&](const auto& file) {
                                    return used.count(file.get()) == 0;
                                  }),
                   plan.files.end());
}

}  // namespace

absl::StatusOr<Plan> Compile(Graph graph, const CompileOptions& options,
                             const PassObserver& observer,
                             const std::string& stop_after) {
  for (const std::string& name : options.disabled_passes) {
    WEFT_RETURN_IF_ERROR(CheckPassName(name));
  }
  PipelineOptions pipeline;
  pipeline.passes.kernels = {options.isa, options.f16_compute};
  pipeline.passes.planner = options.planner;
  pipeline.passes.shard = options.shard;
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
  WEFT_RETURN_IF_ERROR(
      RunPasses(graph, false, pipeline, &plan.passes, &stopped));
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
      WEFT_RETURN_IF_ERROR(RunPasses(bucket, true, pipeline,
                                     last ? &plan.passes : nullptr,
                                     &stopped_here));
    }
    if (stop_after.empty() && bucket.arena.bytes < 0) {
      // Without plan-buffers: every value a place of its own.
      PassOptions plain = pipeline.passes;
      plain.planner = PlanStrategy::kNoReuse;
      WEFT_RETURN_IF_ERROR(PlanBuffers(bucket, plain));
    }
    plan.buckets.push_back(bucket.Compact());
  }
  if (!stop_after.empty()) return plan;
  WEFT_RETURN_IF_ERROR(VerifyPlan(plan));
  return plan;
}

void AddNextTokenBlock(Plan block, Plan* plan) {
  const Graph& main = plan->buckets.back();
  for (Graph& graph : block.buckets) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      Value& value = graph.value(id);
      if (value.kind != ValueKind::kWeight) continue;
      const ValueId other = main.FindValue(value.name);
      if (other == kNone || main.value(other).type == value.type) continue;
      value.name =
          graph.FreeName(absl::StrCat("next_token_block.", value.name));
    }
  }
  plan->next_token_buckets = std::move(block.buckets);
}

absl::Status MakeWeights(Plan& plan, ThreadPool& threads, bool huge_pages,
                         const Progress& progress, bool copy) {
  if (copy) {
    CopyFromFiles(plan);
  } else {
    ReadMapped(plan.buckets.front());
    if (!plan.next_token_buckets.empty()) {
      ReadMapped(plan.next_token_buckets.front());
    }
  }
  const std::vector<WeightJob> jobs = WeightJobs(plan, true);
  if (jobs.empty()) return plan.CheckFiles();
  WEFT_ASSIGN_OR_RETURN(Arena arena,
                        Arena::Create(TotalBytes(jobs), "weights", huge_pages));
  auto memory = std::make_shared<Arena>(std::move(arena));
  RunWeightJobs(jobs, threads, progress, [&](size_t i, int) {
    jobs[i].value->data.make(memory->data() + jobs[i].offset);
  });
  // Buckets share weights by name.
  std::map<std::string, absl::Span<const uint8_t>> made;
  for (const WeightJob& job : jobs) {
    made[job.value->name] =
        absl::MakeConstSpan(memory->data() + job.offset, job.bytes);
  }
  for (Graph* graph : plan.AllGraphs()) {
    for (ValueId id = 0; id < graph->value_count(); ++id) {
      Value& value = graph->value(id);
      if (value.kind != ValueKind::kWeight || value.data.make == nullptr) {
        continue;
      }
      value.data = WeightData();
      value.data.bytes = made.at(value.name);
      value.data.owner = memory;
    }
  }
  WEFT_RETURN_IF_ERROR(plan.CheckFiles());
  ForgetUnusedFiles(plan);
  return absl::OkStatus();
}

}  // namespace weft
