#include "runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"

namespace weft {
namespace {

// Which of a step's numbers an operand's row count is.
enum class RowCount : uint8_t { kFixed, kTokens, kOutputs };

}  // namespace

struct Executor::Bucket {
  struct Step {
    std::unique_ptr<Kernel> kernel;
    KernelCall call;
    int first_operand;
  };

  const Graph* graph;
  std::vector<Operand> operands;
  std::vector<RowCount> row_counts;  // of each operand
  std::vector<int> logits;           // operands that are the caller's logits
  std::vector<Step> steps;
  std::vector<NodeId> nodes;  // of each step
};

Executor::Executor(std::shared_ptr<const Plan> plan, ThreadPool* threads,
                   KvCache* cache)
    : plan_(std::move(plan)), threads_(threads), cache_(cache) {}

Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    std::shared_ptr<const Plan> plan, ThreadPool* threads, KvCache* cache,
    bool huge_pages) {
  const PlanMemory memory = MemoryOf(*plan, 1, 1);
  const int64_t tokens = plan->max_tokens();
  std::unique_ptr<Executor> executor(
      new Executor(std::move(plan), threads, cache));
  absl::StatusOr<Arena> arena =
      Arena::Create(memory.arena, "intermediates", huge_pages);
  if (!arena.ok()) return arena.status();
  executor->arena_ = *std::move(arena);
  executor->thread_scratch_bytes_ = memory.thread_scratch;
  absl::StatusOr<Arena> scratch =
      Arena::Create(memory.thread_scratch * threads->threads(), "scratch");
  if (!scratch.ok()) return scratch.status();
  executor->scratch_ = *std::move(scratch);
  for (std::vector<int32_t>* numbers :
       {&executor->ids_, &executor->positions_, &executor->sequences_,
        &executor->output_rows_}) {
    numbers->resize(tokens);
  }
  for (const Graph& graph : executor->plan_->buckets) {
    executor->buckets_.push_back(std::make_unique<Bucket>());
    absl::Status s = executor->Prepare(graph, executor->buckets_.back().get());
    if (!s.ok()) return s;
  }
  return executor;
}

absl::Status Executor::Prepare(const Graph& graph, Bucket* bucket) {
  bucket->graph = &graph;
  // Versions of a state are one place in the cache: that of their first.
  std::vector<int> state_of(graph.value_count(), -1);
  int states = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).kind == ValueKind::kState) state_of[id] = states++;
  }
  if (states != static_cast<int>(cache_->states().size())) {
    return absl::InternalError("the KV cache was made for another plan");
  }
  const std::pair<const char*, int32_t*> inputs[] = {
      {"ids", ids_.data()},
      {"positions", positions_.data()},
      {"sequence", sequences_.data()},
      {"output_rows", output_rows_.data()}};

  const auto add_operand = [&](ValueId id) -> absl::Status {
    const Value& value = graph.value(id);
    const ViewOf view = RootOf(graph, id);
    const Value& root = graph.value(view.root);
    Operand operand = MatrixOperand(value.type, graph.bounds, nullptr);
    RowCount rows = RowCount::kFixed;
    const Dim& dim = value.type.shape[0];
    if (dim == Dim::Tokens()) rows = RowCount::kTokens;
    if (dim == Dim::Rows()) rows = RowCount::kOutputs;
    if (state_of[id] >= 0) {
      operand.state = &cache_->states()[state_of[id]];
    } else if (root.kind == ValueKind::kInput) {
      for (const auto& [name, data] : inputs) {
        if (root.name == name) operand.data = data;
      }
      if (operand.data == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("illegal plan: unknown input '", root.name, "'"));
      }
      operand.rows = 1;
      rows = RowCount::kFixed;
    } else if (root.kind == ValueKind::kWeight) {
      operand.data = const_cast<uint8_t*>(root.data.bytes.data());
      if (operand.data == nullptr) {
        return absl::InternalError(
            absl::StrCat("weight ", root.name, " has no bytes"));
      }
    } else if (graph.IsOutput(view.root)) {
      bucket->logits.push_back(static_cast<int>(bucket->operands.size()));
    } else {
      operand.data = arena_.data() + value.offset;
    }
    if (view.root != id && operand.row_bytes > 0) {
      operand.row_bytes =
          MatrixOperand(root.type, graph.bounds, nullptr).row_bytes;
    }
    bucket->operands.push_back(operand);
    bucket->row_counts.push_back(rows);
    return absl::OkStatus();
  };

  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    const OpDef& op = OpOf(node);
    if (op.view) continue;
    Bucket::Step step;
    step.first_operand = static_cast<int>(bucket->operands.size());
    if (op.writes_state) state_of[node.outputs[0]] = state_of[node.inputs[0]];
    for (ValueId id : node.inputs) {
      if (absl::Status s = add_operand(id); !s.ok()) return s;
    }
    for (ValueId id : node.outputs) {
      if (absl::Status s = add_operand(id); !s.ok()) return s;
    }
    const KernelRow* row = FindKernel(node.attributes.String("kernel"));
    step.kernel = row->Create({graph, node, {plan_->options.isa}});
    step.call = {};
    if (node.scratch_offset >= 0) {
      step.call.scratch = arena_.data() + node.scratch_offset;
    }
    bucket->steps.push_back(std::move(step));
    bucket->nodes.push_back(n);
  }
  // Only now does the table stay where it is.
  for (size_t i = 0; i < bucket->steps.size(); ++i) {
    Bucket::Step& step = bucket->steps[i];
    const Node& node = graph.node(bucket->nodes[i]);
    step.call.inputs = bucket->operands.data() + step.first_operand;
    step.call.outputs = step.call.inputs + node.inputs.size();
  }
  return absl::OkStatus();
}

absl::Status Executor::Check(const Batch& batch) const {
  const int64_t tokens = static_cast<int64_t>(batch.ids.size());
  const auto error = [](absl::string_view what, int64_t found, int64_t least,
                        int64_t most) {
    return absl::InvalidArgumentError(absl::StrCat("cannot run step: ", what,
                                                   " is ", found, ": want ",
                                                   least, " to ", most));
  };
  if (tokens < 1 || tokens > plan_->max_tokens()) {
    return error("number of tokens", tokens, 1, plan_->max_tokens());
  }
  if (static_cast<int64_t>(batch.positions.size()) != tokens ||
      static_cast<int64_t>(batch.sequences.size()) != tokens) {
    return error("number of positions or sequences",
                 static_cast<int64_t>(batch.positions.size()), tokens, tokens);
  }
  const int64_t outputs = static_cast<int64_t>(batch.output_rows.size());
  if (outputs < 1 || outputs > tokens) {
    return error("number of output rows", outputs, 1, tokens);
  }
  const int64_t vocabulary = plan_->model.vocabulary_size;
  for (int64_t t = 0; t < tokens; ++t) {
    const int32_t id = batch.ids[t];
    const int32_t position = batch.positions[t];
    const int32_t slot = batch.sequences[t];
    if (id < 0 || id >= vocabulary) {
      return error("token id", id, 0, vocabulary - 1);
    }
    if (position < 0 || position >= plan_->context()) {
      return error("position", position, 0, plan_->context() - 1);
    }
    if (slot < 0 || slot >= cache_->pool().slots()) {
      return error("sequence", slot, 0, cache_->pool().slots() - 1);
    }
  }
  for (int32_t row : batch.output_rows) {
    if (row < 0 || row >= tokens) {
      return error("output row", row, 0, tokens - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::Run(const Batch& batch) {
  if (absl::Status s = Check(batch); !s.ok()) return s;
  const int64_t tokens = static_cast<int64_t>(batch.ids.size());
  const int64_t outputs = static_cast<int64_t>(batch.output_rows.size());
  std::copy(batch.ids.begin(), batch.ids.end(), ids_.begin());
  std::copy(batch.positions.begin(), batch.positions.end(), positions_.begin());
  std::copy(batch.sequences.begin(), batch.sequences.end(), sequences_.begin());
  std::copy(batch.output_rows.begin(), batch.output_rows.end(),
            output_rows_.begin());
  Bucket* bucket = nullptr;
  for (const auto& b : buckets_) {
    if (b->graph->bounds.tokens >= tokens) {
      bucket = b.get();
      break;
    }
  }
  for (size_t i = 0; i < bucket->operands.size(); ++i) {
    if (bucket->row_counts[i] == RowCount::kTokens) {
      bucket->operands[i].rows = tokens;
    } else if (bucket->row_counts[i] == RowCount::kOutputs) {
      bucket->operands[i].rows = outputs;
    }
  }
  for (int i : bucket->logits) bucket->operands[i].data = batch.logits;

  const ThreadPool::Scope scope(threads_);
  for (size_t i = 0; i < bucket->steps.size(); ++i) {
    const Bucket::Step& step = bucket->steps[i];
    if (observer_ != nullptr) {
      observer_->Before(*bucket->graph, bucket->nodes[i], step.call);
    }
    for (int phase = 0; phase < step.kernel->phases(); ++phase) {
      threads_->ParallelFor(step.kernel->Items(step.call, phase),
                            [&](int64_t begin, int64_t end, int thread) {
                              KernelCall call = step.call;
                              call.thread_scratch =
                                  scratch_.data() +
                                  thread * thread_scratch_bytes_;
                              step.kernel->Run(call, phase, begin, end);
                            });
    }
    if (observer_ != nullptr) {
      observer_->After(*bucket->graph, bucket->nodes[i], step.call);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
