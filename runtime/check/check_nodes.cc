#include "runtime/check/check_nodes.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "graph/listing.h"
#include "graph/standard_inputs.h"
#include "ops/kernels/kernel_table.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"
#include "runtime/execution/executor.h"

namespace weft {
namespace {

// What a row may differ by where a number was rounded to 8 bits the other way.
constexpr double kRoundedOtherwise = 2e-2;

}  // namespace

// Rounding otherwise happens in few rows: where more differ it is no excuse.
double ToleranceOf(const Node& node, const KernelEntry& entry,
                   const Difference& difference) {
  const OpDef& op = OpOf(node);
  const bool excused = op.rounds_inside != nullptr && op.rounds_inside(node) &&
                       difference.rows_beyond <= 1 + difference.rows / 4;
  return excused ? std::max(entry.tolerance(), kRoundedOtherwise)
                 : entry.tolerance();
}

namespace {

// Whether numbers are rounded to few bits on the way to the result.
bool Rounds(const Node& node, const ValueType& result) {
  const OpDef& op = OpOf(node);
  return RoundsToUnits(result) ||
         (op.rounds_inside != nullptr && op.rounds_inside(node));
}

// Bytes [begin, end) that a node wrote to.
struct Written {
  const uint8_t* begin;
  const uint8_t* end;
  NodeId node;
};

class Checker : public NodeObserver {
 public:
  Checker(const Graph& graph, ReferenceEvaluator* evaluator, NodeCheck* check,
          std::vector<NodeFault>* faults)
      : graph_(graph),
        evaluator_(*evaluator),
        check_(*check),
        faults_(*faults) {}

  // Before a step of this many tokens, logits wanted for all. States keep what
  // the last step wrote.
  void Begin(int64_t tokens) {
    step_ = {tokens, tokens, graph_.bounds.context};
    Contents states(graph_.value_count());
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      if (graph_.value(id).kind == ValueKind::kState) states[id] = Last(id);
    }
    expected_ = std::move(states);
    written_.clear();
  }

  void Before(const Graph&, NodeId id, const KernelCall& call) override {
    const Node& node = graph_.node(id);
    operands_.clear();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId value = node.inputs[i];
      operands_.push_back(Read(value, call.inputs[i]));
      CheckIntact(id, value, call.inputs[i]);
    }
  }

  void After(const Graph&, NodeId id, const KernelCall& call) override {
    const Node& node = graph_.node(id);
    const KernelEntry* entry = FindKernel(node.kernel);
    const std::vector<ContentPointer> want =
        evaluator_.Evaluate(graph_, node, step_, operands_);
    std::vector<std::vector<double>> moved;  // asked for where it matters
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId value = node.outputs[i];
      const ContentPointer found = Read(value, call.outputs[i]);
      const ValueType& type = graph_.value(value).type;
      const bool floats = type.dtype == DType::kF32 && type.layout.empty();
      if (floats && check_.nan_node.empty() && HasNan(type, step_, *found)) {
        check_.nan_node = LabelOf(node);
      }
      Difference difference =
          Compare(type, step_, *found, *want[i], entry->tolerance());
      double tolerance = ToleranceOf(node, *entry, difference);
      double share = difference.relative / tolerance;
      if (share > 1 && Rounds(node, type)) {
        if (moved.empty()) {
          moved = evaluator_.MovedByRounding(graph_, node, step_, operands_);
        }
        difference = Compare(type, step_, *found, *want[i], entry->tolerance(),
                             &moved[i]);
        tolerance = ToleranceOf(node, *entry, difference);
        share = difference.relative / tolerance;
      }
      if (share > check_.worst) {
        check_.worst = share;
        check_.worst_node = LabelOf(node);
        check_.worst_kernel = entry->name();
      }
      if (share > 1) {
        Fault(id, absl::StrFormat(
                      "differs from the reference: row %d column %d is %.9g, "
                      "want %.9g (%.2g of the row's root mean square, at most "
                      "%.2g)",
                      difference.row, difference.column, difference.found,
                      difference.want, difference.relative, tolerance));
      }
      // From here on what was really written counts.
      expected_[value] = found;
      const Operand& out = call.outputs[i];
      const int64_t bytes = out.row_bytes > 0
                                ? out.rows * out.row_bytes
                                : StorageBytes(graph_.value(value).type, step_);
      const uint8_t* data = static_cast<const uint8_t*>(out.data);
      if (data != nullptr) written_.push_back({data, data + bytes, id});
    }
    const int64_t scratch = entry->ScratchBytes({graph_, node, {}});
    if (call.scratch != nullptr && scratch > 0) {
      written_.push_back({call.scratch, call.scratch + scratch, id});
    }
    ++check_.nodes;
  }

 private:
  // What the last step left in a state, or null.
  ContentPointer Last(ValueId state) const {
    if (expected_.empty()) return nullptr;
    ContentPointer last = expected_[state];
    ValueId version = state;
    for (NodeId n : graph_.order()) {
      const Node& node = graph_.node(n);
      if (!OpOf(node).writes_state || node.inputs[0] != version) continue;
      version = node.outputs[0];
      last = expected_[version];
    }
    return last;
  }

  // What memory holds now.
  ContentPointer Read(ValueId id, const Operand& operand) {
    const Value& value = graph_.value(id);
    if (value.kind == ValueKind::kWeight) {
      return *evaluator_.Weight(value);  // it has bytes: the plan runs
    }
    std::vector<uint8_t> bytes(StorageBytes(value.type, step_));
    if (operand.state != nullptr && IsSlotState(value.type)) {
      std::memcpy(bytes.data(), operand.state->pages, bytes.size());
    } else if (operand.state != nullptr) {
      const KvState& state = *operand.state;
      const int64_t page = KvPageBytes(value.type);
      for (int64_t p = 0; p * page < static_cast<int64_t>(bytes.size()); ++p) {
        if (state.page_table[p] < 0) continue;  // no page: nothing written
        std::memcpy(bytes.data() + p * page,
                    state.pages + state.page_table[p] * state.page_bytes, page);
      }
    } else {
      const uint8_t* data = static_cast<const uint8_t*>(operand.data);
      const Operand compact = MatrixOperand(value.type, step_, nullptr);
      if (compact.row_bytes == 0 || operand.rows <= 1) {
        std::memcpy(bytes.data(), data, bytes.size());
      } else {
        for (int64_t row = 0; row < compact.rows; ++row) {
          std::memcpy(bytes.data() + row * compact.row_bytes,
                      data + row * operand.row_bytes, compact.row_bytes);
        }
      }
    }
    return std::make_shared<Content>(std::move(bytes));
  }

  // What the value should hold, or null where nothing is known.
  ContentPointer Expected(ValueId id) {
    if (expected_[id] != nullptr) return expected_[id];
    const Node* producer = graph_.Producer(id);
    if (producer == nullptr || !OpOf(*producer).view) return nullptr;
    const ValueId parent = producer->inputs[0];
    const ContentPointer content = Expected(parent);
    if (content == nullptr) return nullptr;
    return ViewContent(graph_.value(parent).type, *producer,
                       graph_.value(id).type, step_, *content);
  }

  // The operand that node `id` is about to read still holds what was written.
  void CheckIntact(NodeId id, ValueId value, const Operand& operand) {
    const ContentPointer want = Expected(value);
    if (want == nullptr || *want == *operands_.back()) return;
    const ViewOf view = RootOf(graph_, value);
    const NodeId writer = graph_.value(view.root).producer;
    const uint8_t* begin = static_cast<const uint8_t*>(operand.data);
    const int64_t bytes = operand.row_bytes > 0
                              ? operand.rows * operand.row_bytes
                              : StorageBytes(graph_.value(value).type, step_);
    // Who wrote there since.
    NodeId culprit = kNone;
    for (const Written& w : written_) {
      if (w.node == writer) {
        culprit = kNone;
      } else if (begin != nullptr && w.begin < begin + bytes && begin < w.end) {
        culprit = w.node;
      }
    }
    const std::string written =
        writer == kNone
            ? graph_.value(value).name
            : absl::StrCat("the result of ", LabelOf(graph_.node(writer)));
    if (culprit == kNone) {
      Fault(id, absl::StrCat("reads ", written,
                             ", which something outside the graph overwrote"));
    } else {
      Fault(culprit, absl::StrCat("overwrites ", written, " before ",
                                  LabelOf(graph_.node(id)), " reads it"));
    }
  }

  void Fault(NodeId id, std::string fault) {
    if (!told_.insert(id).second) return;
    const Node& node = graph_.node(id);
    faults_.push_back({graph_.bounds.tokens, LabelOf(node), node.op->name,
                       node.kernel, std::move(fault)});
  }

  const Graph& graph_;
  ReferenceEvaluator& evaluator_;
  NodeCheck& check_;
  std::vector<NodeFault>& faults_;
  Bounds step_;
  Contents operands_;  // of the node that runs
  Contents expected_;  // by value, what was written in this step
  std::vector<Written> written_;
  std::set<NodeId> told_;
};

// One bucket, as a plan of its own.
absl::Status CheckBucket(const Plan& plan, const Graph& bucket,
                         absl::Span<const int32_t> tokens, ThreadPool& threads,
                         ReferenceEvaluator* evaluator, NodeReport* report) {
  auto alone = std::make_shared<Plan>(plan);
  alone->buckets = {bucket};
  KvCacheShape shape;
  shape.states = StatesOf(bucket);
  shape.slots = 1;
  shape.pages_per_sequence = (plan.context() + kPageTokens - 1) / kPageTokens;
  shape.pages = PagesForTokens(tokens.size());
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<KvCache> cache, KvCache::Create(shape));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                        Executor::Create(alone, &threads, cache.get()));

  const std::vector<float> scales = plan.model.AdapterScales();
  NodeCheck check;
  check.bucket = bucket.bounds.tokens;
  Checker checker(alone->buckets[0], evaluator, &check, &report->faults);
  executor->Observe(&checker);
  const int64_t total = static_cast<int64_t>(tokens.size());
  // Two thirds, then the rest: not a multiple of anything.
  int64_t next = 0;
  for (int64_t size : {(2 * total + 2) / 3, total}) {
    size = std::min({size, total - next, bucket.bounds.tokens});
    if (size == 0) break;
    const absl::Span<const int32_t> part = tokens.subspan(next, size);
    StepInputs inputs = TokenInputs(part, static_cast<int32_t>(next), scales);
    next += size;
    WEFT_RETURN_IF_ERROR(cache->Reserve(0, next));
    std::vector<float> logits(size * plan.model.output_columns());
    checker.Begin(size);
    const auto numbers = [&](StandardInput input) -> absl::Span<const int32_t> {
      return inputs[Info(input).name];
    };
    const std::vector<float> row_scales = plan.model.AdapterScales(size);
    absl::Status s = executor->Run({part, numbers(StandardInput::kPositions),
                                    numbers(StandardInput::kSequence),
                                    numbers(StandardInput::kOutputRows),
                                    logits.data(), row_scales});
    if (!s.ok()) return s;
    ++check.steps;
  }
  report->checks.push_back(std::move(check));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeReport> CheckNodes(const Plan& plan,
                                      absl::Span<const int32_t> tokens,
                                      ThreadPool& threads,
                                      ReferenceEvaluator* evaluator) {
  NodeReport report;
  evaluator->ForgetWeights();
  for (const Graph& bucket : plan.buckets) {
    evaluator->NextRun();
    absl::Status s =
        CheckBucket(plan, bucket, tokens, threads, evaluator, &report);
    if (!s.ok()) return s;
  }
  return report;
}

}  // namespace weft
