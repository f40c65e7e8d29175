#include "runtime/execution/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/next_token_block.h"
#include "graph/standard_inputs.h"
#include "ops/collectives.h"
#include "ops/experts.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"
#include "runtime/execution/expert_stream.h"
#include "runtime/execution/rank_steps.h"
#include "runtime/ranks/communicator.h"

namespace weft {
namespace {

// Which of a step's numbers an operand's row count is.
enum class RowCount : uint8_t { kFixed, kTokens, kOutputs };

// -1 when there is none of this name.
int FindPort(const std::vector<Port>& ports, const std::string& name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Of each node, whether it works for nothing where no output rows are wanted:
// no state and no output of another number of rows depends on it.
std::vector<bool> NodesForRows(const Graph& graph) {
  std::vector<bool> wanted(graph.value_count(), false);
  for (const auto& [name, id] : graph.outputs()) {
    const Shape& shape = graph.value(id).type.shape;
    wanted[id] = shape.rank() == 0 || !(shape[0] == Dim::Rows());
  }
  std::vector<bool> for_rows(graph.node_count(), true);
  const std::vector<NodeId>& order = graph.order();
  for (auto n = order.rbegin(); n != order.rend(); ++n) {
    const Node& node = graph.node(*n);
    for (ValueId id : node.outputs) {
      if (wanted[id]) for_rows[*n] = false;
    }
    if (for_rows[*n]) continue;
    for (ValueId id : node.inputs) wanted[id] = true;
  }
  return for_rows;
}

}  // namespace

struct Executor::Bucket {
  struct NodeStep {
    std::unique_ptr<Kernel> kernel;
    KernelCall call;
    int first_operand;
    std::vector<int> guarded;  // weights whose checksums are to be compared
    int operands;              // inputs and results
    int inputs;
    int slot_state = -1;  // the state by sequence that the node updates
    int streamed = -1;    // the weight whose experts are streamed
    // Of an all_gather: what each rank gives for a row.
    std::vector<int64_t> gathered_row_bytes;
    bool for_rows = false;  // only what is made of output rows depends on it
  };

  // An operand whose memory the caller gives anew in every step.
  struct External {
    int operand;
    int port;
    int64_t byte_offset;
  };

  const Graph* graph;
  std::vector<Operand> operands;
  std::vector<RowCount> row_counts;  // of each operand
  std::vector<External> inputs, outputs;
  std::vector<NodeStep> steps;
  std::vector<NodeId> nodes;  // of each step
};

Executor::Executor(std::shared_ptr<const Plan> plan, ThreadPool* threads,
                   KvCache* cache, int first_state, ExpertStream* experts)
    : plan_(std::move(plan)),
      threads_(threads),
      cache_(cache),
      first_state_(first_state),
      experts_(experts),
      guard_(*plan_) {}

Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    std::shared_ptr<const Plan> plan, ThreadPool* threads, KvCache* cache,
    bool huge_pages, int32_t rewind_rows, int first_state,
    Communicator* communicator, ExpertStream* experts) {
  const PlanMemory memory = MemoryOf(*plan, 1, 1);
  std::unique_ptr<Executor> executor(
      new Executor(std::move(plan), threads, cache, first_state, experts));
  executor->communicator_ = communicator;
  WEFT_ASSIGN_OR_RETURN(
      Arena arena, Arena::Create(memory.arena, "intermediates", huge_pages));
  executor->arena_ = std::move(arena);
  executor->thread_scratch_bytes_ = memory.thread_scratch;
  WEFT_ASSIGN_OR_RETURN(
      Arena scratch,
      Arena::Create(memory.thread_scratch * threads->threads(), "scratch"));
  executor->scratch_ = std::move(scratch);
  for (const Graph& graph : executor->plan_->buckets) {
    WEFT_RETURN_IF_ERROR(executor->CollectPorts(graph));
  }
  executor->NameBatchInputs();
  if (executor->hidden_output_ >= 0) {
    WEFT_ASSIGN_OR_RETURN(
        executor->hidden_memory_,
        Arena::Create(executor->plan_->max_tokens() *
                          executor->plan_->model.embedding_length *
                          int64_t{sizeof(float)},
                      "hidden rows"));
  }
  if (rewind_rows < 0 || rewind_rows > executor->plan_->max_tokens()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot go back ", rewind_rows, " rows: want 0 to ",
                     executor->plan_->max_tokens(),
                     ", as many as the plan takes in a step"));
  }
  if (cache != nullptr) {
    WEFT_ASSIGN_OR_RETURN(executor->history_,
                          StateHistory::Create(executor->plan_->buckets.back(),
                                               cache, rewind_rows));
  }
  for (const Graph& graph : executor->plan_->buckets) {
    WEFT_RETURN_IF_ERROR(executor->CheckRank(graph));
    executor->buckets_.push_back(std::make_unique<Bucket>());
    absl::Status s = executor->Prepare(graph, executor->buckets_.back().get());
    if (!s.ok()) return s;
  }
  return executor;
}

// Buckets have the same inputs and outputs, but for inputs that nothing reads.
absl::Status Executor::CollectPorts(const Graph& graph) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kInput && FindPort(inputs_, value.name) < 0) {
      inputs_.push_back({value.name, value.type});
    }
  }
  std::set<ValueId> given;
  for (const auto& [name, id] : graph.outputs()) {
    const Node* producer = graph.Producer(id);
    if (IsStateVersion(graph, id)) continue;
    if (!given.insert(id).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot run graph: output ", name,
                       ": is another output too: give each value out once"));
    }
    if (producer == nullptr || OpOf(*producer).view) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot run graph: output ", name,
          ": no node writes it: give the result of one that is no slice"));
    }
    if (FindPort(outputs_, name) < 0) {
      outputs_.push_back({name, graph.value(id).type});
    }
  }
  return absl::OkStatus();
}

void Executor::NameBatchInputs() {
  hidden_output_ = FindPort(outputs_, kHiddenRows);
  const size_t results = hidden_output_ >= 0 ? 2 : 1;
  if (outputs_.size() != results ||
      FindPort(outputs_, plan_->model.output()) < 0) {
    hidden_output_ = -1;
    return;
  }
  batch_results_.resize(results);
  for (const Port& input : inputs_) {
    const StandardInputInfo* standard = FindStandardInput(input.name);
    if (standard == nullptr) {
      batch_inputs_.clear();
      hidden_output_ = -1;
      return;
    }
    batch_inputs_.push_back(static_cast<int>(standard->input));
  }
  batch_data_.resize(inputs_.size());
  if (FindPort(inputs_, Info(StandardInput::kLastPositions).name) >= 0) {
    last_positions_.resize(plan_->max_tokens());
    last_of_slot_.resize(cache_ != nullptr ? cache_->pool().slots() : 1);
  }
  no_adapters_.resize(plan_->max_tokens() * plan_->model.adapters.size());
}

// Of each row's sequence in this step.
void Executor::FindLastPositions(const Batch& batch) {
  if (last_positions_.empty()) return;
  const bool slots = cache_ != nullptr;
  std::fill(last_of_slot_.begin(), last_of_slot_.end(), 0);
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    int32_t& last = last_of_slot_[slots ? batch.slots[t] : 0];
    last = std::max(last, batch.positions[t]);
  }
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    last_positions_[t] = last_of_slot_[slots ? batch.slots[t] : 0];
  }
}

absl::Status Executor::Prepare(const Graph& graph, Bucket* bucket) {
  bucket->graph = &graph;
  // Versions of a state are one place in the cache: that of their first.
  std::vector<int> state_of(graph.value_count(), -1);
  int states = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).kind == ValueKind::kState) state_of[id] = states++;
  }
  const int cached =
      cache_ != nullptr ? static_cast<int>(cache_->states().size()) : 0;
  if (states > cached - first_state_) {
    return absl::InternalError("the KV cache was made for another plan");
  }
  std::vector<int> output_of(graph.value_count(), -1);
  for (const auto& [name, id] : graph.outputs()) {
    output_of[id] = FindPort(outputs_, name);
  }

  const std::vector<bool> for_rows = NodesForRows(graph);
  const auto add_operand = [&](ValueId id) -> absl::Status {
    const Value& value = graph.value(id);
    const ViewOf view = RootOf(graph, id);
    const Value& root = graph.value(view.root);
    const int place = static_cast<int>(bucket->operands.size());
    Operand operand = MatrixOperand(value.type, graph.bounds, nullptr);
    RowCount rows = RowCount::kFixed;
    const Dim& dim = value.type.shape[0];
    if (dim == Dim::Tokens()) rows = RowCount::kTokens;
    if (dim == Dim::Rows()) rows = RowCount::kOutputs;
    if (state_of[id] >= 0) {
      operand.state = &cache_->states()[first_state_ + state_of[id]];
    } else if (root.kind == ValueKind::kInput) {
      bucket->inputs.push_back(
          {place, FindPort(inputs_, root.name), view.byte_offset});
      if (value.type.shape.rank() == 1) {
        operand.rows = 1;
        rows = RowCount::kFixed;
      }
    } else if (root.kind == ValueKind::kWeight) {
      if (root.data.bytes.empty()) {
        return absl::InternalError(
            absl::StrCat("weight ", root.name, " has no bytes"));
      }
      operand.data =
          const_cast<uint8_t*>(root.data.bytes.data()) + view.byte_offset;
    } else if (output_of[view.root] >= 0) {
      bucket->outputs.push_back(
          {place, output_of[view.root], view.byte_offset});
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
    Bucket::NodeStep step;
    step.first_operand = static_cast<int>(bucket->operands.size());
    step.inputs = static_cast<int>(node.inputs.size());
    step.operands = step.inputs + static_cast<int>(node.outputs.size());
    if (op.writes_state) {
      const int state = state_of[node.inputs[0]];
      state_of[node.outputs[0]] = state;
      if (cache_->states()[first_state_ + state].page_table == nullptr) {
        step.slot_state = state;
        update_operands_.resize(
            std::max(update_operands_.size(), size_t(step.operands)));
      }
    }
    for (ValueId id : node.inputs) {
      WEFT_RETURN_IF_ERROR(add_operand(id));
      const ValueId root = RootOf(graph, id).root;
      const int weight =
          graph.IsWeight(root) ? guard_.Find(graph.value(root).name) : -1;
      if (weight >= 0) step.guarded.push_back(weight);
    }
    for (ValueId id : node.outputs) {
      WEFT_RETURN_IF_ERROR(add_operand(id));
    }
    const KernelEntry* entry = FindKernel(node.kernel);
    step.kernel = entry->Create({graph, node, {plan_->options.isa}});
    step.call = {};
    step.for_rows = for_rows[n];
    if (node.Is(kAllGatherOp)) {
      for (int rank = 0; rank < communicator_->ranks(); ++rank) {
        step.gathered_row_bytes.push_back(GatheredRowBytes(graph, node, rank));
      }
    }
    if (experts_ != nullptr && IsExpertMatmul(node)) {
      step.streamed = experts_->Find(graph.value(node.inputs[1]).name);
    }
    if (node.scratch_offset >= 0) {
      step.call.scratch = arena_.data() + node.scratch_offset;
    }
    bucket->steps.push_back(std::move(step));
    bucket->nodes.push_back(n);
  }
  // Only now does the table stay where it is.
  for (size_t i = 0; i < bucket->steps.size(); ++i) {
    Bucket::NodeStep& step = bucket->steps[i];
    const Node& node = graph.node(bucket->nodes[i]);
    step.call.inputs = bucket->operands.data() + step.first_operand;
    step.call.outputs = step.call.inputs + node.inputs.size();
  }
  return absl::OkStatus();
}

// That the graph is this rank's, of as many as there are.
absl::Status Executor::CheckRank(const Graph& graph) const {
  const int rank = communicator_ != nullptr ? communicator_->rank() : 0;
  const int ranks = communicator_ != nullptr ? communicator_->ranks() : 1;
  for (NodeId id : graph.order()) {
    if (!graph.node(id).Is(kAllGatherOp)) continue;
    const auto gather = graph.node(id).attributes.As<AllGatherAttributes>();
    if (gather.rank == rank && gather.ranks == ranks) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot run graph: it is the part of rank ", gather.rank,
                     " of ", gather.ranks, ", and this is rank ", rank, " of ",
                     ranks, ": start as many with mpirun -n ", gather.ranks));
  }
  return absl::OkStatus();
}

absl::Status Executor::Check(const Batch& batch) const {
  if (batch_inputs_.empty()) {
    return absl::FailedPreconditionError(
        "cannot run step: the plan is no language model's: run it by its own "
        "inputs and outputs");
  }
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
      static_cast<int64_t>(batch.slots.size()) != tokens) {
    return error("number of positions or slots",
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
    const int32_t slot = batch.slots[t];
    if (id < 0 || id >= vocabulary) {
      return error("token id", id, 0, vocabulary - 1);
    }
    if (position < 0 || position >= plan_->context()) {
      return error("position", position, 0, plan_->context() - 1);
    }
    if (cache_ != nullptr && (slot < 0 || slot >= cache_->pool().slots())) {
      return error("sequence", slot, 0, cache_->pool().slots() - 1);
    }
  }
  for (int32_t row : batch.output_rows) {
    if (row < 0 || row >= tokens) {
      return error("output row", row, 0, tokens - 1);
    }
  }
  const int64_t scales = static_cast<int64_t>(batch.adapter_scales.size());
  const int64_t want =
      tokens * static_cast<int64_t>(plan_->model.adapters.size());
  if (scales != 0 && scales != want) {
    return error("number of scales of adapters", scales, want, want);
  }
  for (float scale : batch.adapter_scales) {
    if (std::isfinite(scale)) continue;
    return absl::InvalidArgumentError(
        "cannot run step: scale of an adapter is not finite: want a number");
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckRuns(const Batch& batch) const {
  if (cache_ == nullptr || !cache_->has_slots()) return absl::OkStatus();
  const auto error = [](int32_t slot, int32_t position,
                        absl::string_view want) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot run step: position ", position, " of sequence ",
                     slot, " does not follow on: want ", want));
  };
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    const int32_t slot = batch.slots[t], position = batch.positions[t];
    if (t > 0 && batch.slots[t - 1] == slot) {
      if (position == batch.positions[t - 1] + 1) continue;
      return error(slot, position, "one after the row before");
    }
    if (position != 0 && position != cache_->position(slot)) {
      return error(slot, position,
                   absl::StrCat("0, or ", cache_->position(slot),
                                ", where its state is"));
    }
    for (size_t before = 0; before < t; ++before) {
      if (batch.slots[before] != slot) continue;
      return error(slot, position, "the rows of a sequence side by side");
    }
  }
  return absl::OkStatus();
}

void Executor::SetPositions(const Batch& batch, bool ran) {
  if (cache_ == nullptr || !cache_->has_slots()) return;
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    cache_->SetPosition(batch.slots[t], ran ? batch.positions[t] + 1 : -1);
  }
}

absl::Status Executor::Run(const Batch& batch) {
  WEFT_RETURN_IF_ERROR(Check(batch));
  WEFT_RETURN_IF_ERROR(CheckRuns(batch));
  FindLastPositions(batch);
  if (leader_ != nullptr) WEFT_RETURN_IF_ERROR(leader_->Send(batch));
  const void* numbers[kStandardInputs];
  const auto set = [&](StandardInput input, const void* data) {
    numbers[static_cast<int>(input)] = data;
  };
  set(StandardInput::kIds, batch.ids.data());
  set(StandardInput::kPositions, batch.positions.data());
  set(StandardInput::kSequence, batch.slots.data());
  set(StandardInput::kOutputRows, batch.output_rows.data());
  set(StandardInput::kLastPositions, last_positions_.data());
  set(StandardInput::kAdapterScales, batch.adapter_scales.empty()
                                         ? no_adapters_.data()
                                         : batch.adapter_scales.data());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    batch_data_[i] = numbers[batch_inputs_[i]];
  }
  const int64_t tokens = static_cast<int64_t>(batch.ids.size());
  batch_results_[hidden_output_ == 0 ? 1 : 0] = batch.logits;
  if (hidden_output_ >= 0) {
    batch_results_[hidden_output_] = hidden_memory_.data();
    hidden_rows_ = absl::MakeConstSpan(
        reinterpret_cast<const float*>(hidden_memory_.data()),
        tokens * plan_->model.embedding_length);
  }
  // A step that ends in its middle leaves states that are of no use.
  history_.BeginStep(batch.positions, batch.slots);
  SetPositions(batch, false);
  const absl::Status status =
      Run(Step{tokens, static_cast<int64_t>(batch.output_rows.size()),
               batch_data_, batch_results_});
  // The others wait in the middle of the step.
  if (!status.ok() && communicator_ != nullptr) communicator_->Abort(status);
  if (status.ok()) SetPositions(batch, true);
  history_.EndStep(status.ok());
  return status;
}

void Executor::Mark(int32_t slot) {
  history_.Mark(slot);
  if (cache_ != nullptr) cache_->Tell({CacheChange::kMark, slot});
}

bool Executor::CanTruncate(int32_t slot, int64_t tokens) const {
  return cache_ == nullptr || !cache_->has_slots() || tokens == 0 ||
         tokens == cache_->position(slot) || history_.Reaches(slot, tokens);
}

absl::Status Executor::Truncate(int32_t slot, int64_t tokens) {
  if (cache_ == nullptr) return absl::OkStatus();
  if (slot < 0 || slot >= cache_->pool().slots() || tokens < 0 ||
      !CanTruncate(slot, tokens)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot go back to ", tokens, " tokens: sequence ", slot,
        ": its recurrent states are not kept so far back: mark it before, or "
        "run its tokens again"));
  }
  // The cache tells of its own part, too, which then changes nothing.
  cache_->Tell({CacheChange::kTruncateStates, slot, tokens});
  WEFT_RETURN_IF_ERROR(
      cache_->Truncate(slot, PagesForTokens(tokens) * kPageTokens));
  if (!cache_->has_slots() || tokens == cache_->position(slot)) {
    return absl::OkStatus();
  }
  if (history_.Reaches(slot, tokens)) {
    RunUpdates(slot, history_.GoBack(slot, tokens));
  } else {
    history_.Forget(slot);
  }
  cache_->SetPosition(slot, tokens);
  return absl::OkStatus();
}

// Runs the nodes that update states again, over the first `rows` rows behind
// the slot's mark.
void Executor::RunUpdates(int32_t slot, int64_t rows) {
  if (rows == 0) return;
  const Bucket& bucket = BucketFor(rows);
  const ThreadPool::Scope scope(threads_);
  for (const Bucket::NodeStep& node : bucket.steps) {
    if (node.slot_state < 0) continue;
    std::copy_n(node.call.inputs, node.operands, update_operands_.begin());
    history_.SetOperands(node.slot_state, slot, rows, node.inputs,
                         update_operands_.data());
    KernelCall call = node.call;
    call.inputs = update_operands_.data();
    call.outputs = call.inputs + node.inputs;
    RunKernel(*node.kernel, call, nullptr);
  }
}

// The smallest that takes so many; there is one.
Executor::Bucket& Executor::BucketFor(int64_t rows) const {
  size_t i = 0;
  while (buckets_[i]->graph->bounds.tokens < rows) ++i;
  return *buckets_[i];
}

void Executor::RunKernel(const Kernel& kernel, const KernelCall& call,
                         NodeObserver* observer) {
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    const auto run = [&](int64_t begin, int64_t end, int thread) {
      KernelCall own = call;
      own.thread_scratch = scratch_.data() + thread * thread_scratch_bytes_;
      if (observer != nullptr) observer->BeginRange(thread);
      kernel.Run(own, phase, begin, end);
      if (observer != nullptr) observer->EndRange(thread);
    };
    threads_->ParallelFor(kernel.Items(call, phase), run);
  }
}

// Of the operands of such a node, the third has the ids of each row's experts.
absl::Status Executor::RunStreamed(const Kernel& kernel, KernelCall call,
                                   int weight) {
  const Operand& ids = call.inputs[2];
  const int64_t rows = call.inputs[0].rows;
  return experts_->Run(
      weight,
      absl::MakeConstSpan(static_cast<const int32_t*>(ids.data),
                          static_cast<size_t>(rows * ids.columns)),
      rows, [&](const uint8_t* const* experts) {
        call.experts = experts;
        RunKernel(kernel, call, observer_);
      });
}

absl::Status Executor::Run(const Step& step) {
  Bucket* const bucket = &BucketFor(std::max(step.tokens, step.rows));
  for (size_t i = 0; i < bucket->operands.size(); ++i) {
    if (bucket->row_counts[i] == RowCount::kTokens) {
      bucket->operands[i].rows = step.tokens;
    } else if (bucket->row_counts[i] == RowCount::kOutputs) {
      bucket->operands[i].rows = step.rows;
    }
  }
  // Kernels write to outputs only; the operand has one type for both.
  for (const Bucket::External& input : bucket->inputs) {
    bucket->operands[input.operand].data =
        static_cast<uint8_t*>(const_cast<void*>(step.inputs[input.port])) +
        input.byte_offset;
  }
  for (const Bucket::External& output : bucket->outputs) {
    bucket->operands[output.operand].data =
        static_cast<uint8_t*>(step.outputs[output.port]) + output.byte_offset;
  }

  const ThreadPool::Scope scope(threads_);
  for (size_t i = 0; i < bucket->steps.size(); ++i) {
    const Bucket::NodeStep& node = bucket->steps[i];
    if (node.for_rows && step.rows == 0) continue;
    if (!guard_.done()) {
      for (int weight : node.guarded) {
        WEFT_RETURN_IF_ERROR(guard_.Check(weight, threads_));
      }
    }
    if (node.slot_state >= 0) {
      history_.Keep(node.slot_state, node.call.inputs, threads_);
    }
    if (observer_ != nullptr) {
      observer_->Before(*bucket->graph, bucket->nodes[i], node.call);
    }
    if (!node.gathered_row_bytes.empty()) {
      const int64_t rows = node.call.outputs[0].rows;
      gathered_bytes_.clear();
      for (int64_t bytes : node.gathered_row_bytes) {
        gathered_bytes_.push_back(rows * bytes);
      }
      WEFT_RETURN_IF_ERROR(communicator_->AllGather(
          node.call.inputs[0].data, gathered_bytes_, node.call.scratch));
    }
    if (node.streamed >= 0) {
      WEFT_RETURN_IF_ERROR(RunStreamed(*node.kernel, node.call, node.streamed));
    } else {
      RunKernel(*node.kernel, node.call, observer_);
    }
    if (observer_ != nullptr) {
      observer_->After(*bucket->graph, bucket->nodes[i], node.call);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft
