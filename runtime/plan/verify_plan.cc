#include "runtime/plan/verify_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/next_token_block.h"
#include "graph/standard_inputs.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "passes/check_plan.h"
#include "passes/lifetimes.h"
#include "runtime/plan/index_inputs.h"

namespace weft {
namespace {

// Far above any machine, and sums of a few stay far from overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxTokens = 1 << 16;
constexpr int64_t kMaxContext = 1 << 24;
constexpr int64_t kMaxVocabulary = 1 << 24;
constexpr int64_t kMaxEmbedding = 1 << 24;

absl::Status Illegal(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("illegal plan: ", where, ": ", what));
}

absl::Status Illegal(const Node& node, absl::string_view what) {
  return Illegal(absl::StrCat(node.op->name, " (", node.name, ")"), what);
}

// --- One bucket's graph.

absl::Status CheckWeights(const Graph& graph) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kWeight) continue;
    const int64_t bytes = value.data.make != nullptr
                              ? value.data.made_bytes
                              : static_cast<int64_t>(value.data.bytes.size());
    // None: a graph that was written by hand, to be looked at.
    if (bytes == 0) continue;
    const int64_t want = StorageBytes(value.type, graph.bounds);
    if (bytes != want) {
      return Illegal(value.name,
                     absl::StrCat("has ", bytes, " bytes, ",
                                  value.type.ToString(), " takes ", want));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKernel(const Graph& graph, const Node& node, Isa cap) {
  const std::string name = node.kernel;
  if (OpOf(node).view) {
    return !node.kernel.empty() ? Illegal(node, "a view has no kernel")
                                : absl::OkStatus();
  }
  const KernelEntry* entry = FindKernel(name);
  if (entry == nullptr) return Illegal(node, absl::StrCat("no kernel ", name));
  if (!Includes(cap, entry->isa())) {
    return Illegal(node, absl::StrCat("kernel ", name, " needs ",
                                      Name(entry->isa()), ", this machine has ",
                                      Name(cap), ": compile it here"));
  }
  if (!entry->Computes(node)) {
    return Illegal(node,
                   absl::StrCat("kernel ", name, " is for ", entry->op()));
  }
  const NodeView view = {graph, node, {cap}};
  if (std::string why = entry->Refuses(view); !why.empty()) {
    return Illegal(node, absl::StrCat("kernel ", name, " refuses: ", why));
  }
  const int64_t scratch = entry->ScratchBytes(view);
  if (scratch > 0 ? node.scratch_offset < 0 : node.scratch_offset != -1) {
    return Illegal(node, "scratch memory has no place, or one without need");
  }
  if (scratch > kMaxBytes || entry->ThreadScratchBytes(view) > kMaxBytes) {
    return Illegal(node, "scratch memory of impossible size");
  }
  return absl::OkStatus();
}

absl::Status CheckArena(const Graph& graph) {
  for (int64_t bytes : {graph.arena.bytes, graph.arena.lower_bound,
                        graph.arena.sum_of_intermediates}) {
    if (bytes < 0 || bytes > kMaxBytes) {
      return Illegal("arena", absl::StrCat(bytes, " bytes is no size"));
    }
  }
  const Lifetimes lifetimes = LifetimesOf(graph);
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < lifetimes.records.size(); ++i) {
    offsets.push_back(lifetimes.values[i] != kNone
                          ? graph.value(lifetimes.values[i]).offset
                          : graph.node(lifetimes.nodes[i]).scratch_offset);
  }
  WEFT_RETURN_IF_ERROR(
      CheckPlan(lifetimes.records, offsets, graph.arena.bytes));
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!OpOf(node).view) continue;
    if (!InArena(graph, node.outputs[0])) {
      // It looks into an input, a weight or an output.
      if (graph.value(node.outputs[0]).offset != -1) {
        return Illegal(node, "a place in the arena, but no value there");
      }
      continue;
    }
    const ViewOf view = RootOf(graph, node.outputs[0]);
    if (graph.value(node.outputs[0]).offset !=
        graph.value(view.root).offset + view.byte_offset) {
      return Illegal(node, "view is not inside its parent");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyBucket(const Graph& graph, const CompileOptions& options,
                          Isa machine) {
  WEFT_RETURN_IF_ERROR(VerifyGraph(graph));
  WEFT_RETURN_IF_ERROR(CheckWeights(graph));
  const Isa cap = RunsOn(machine, options.isa) ? options.isa : machine;
  for (NodeId id : graph.order()) {
    WEFT_RETURN_IF_ERROR(CheckKernel(graph, graph.node(id), cap));
  }
  return CheckArena(graph);
}

// The summation order of each product, by the node's name: it must be the same
// in all buckets.
absl::Status CheckOrders(const Plan& plan) {
  std::map<std::string, std::string> orders;
  for (const Graph& graph : plan.buckets) {
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      const KernelEntry* entry = FindKernel(node.kernel);
      if (entry == nullptr) continue;
      const std::string key = absl::StrCat(node.op->name, " ", node.name);
      const auto it = orders.emplace(key, entry->summation()).first;
      if (it->second != entry->summation()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "illegal plan: ", key, ": kernel ", entry->name(),
            " sums in another order than the one for other token counts"));
      }
    }
  }
  return absl::OkStatus();
}

// --- A language model.

bool IsIndex(IndexKind kind) {
  return kind != IndexKind::kAny && kind != IndexKind::kChosen;
}

// Whether numbers below the input's bound are what is indexed; tables must be
// large enough besides.
bool IsInRange(const IndexUse& use, InputBound below) {
  switch (use.kind) {
    case IndexKind::kAny:
    case IndexKind::kChosen:
      break;
    case IndexKind::kSequence:
      return below == InputBound::kSlots;
    case IndexKind::kPosition:
      return below == InputBound::kContext;
    case IndexKind::kRowOf:
      return use.below.symbol == Dim::kNumber
                 ? below == InputBound::kVocabulary ||
                       below == InputBound::kContext
                 : below == InputBound::kTokens && use.below == Dim::Tokens();
  }
  return false;
}

// Each integer operand is the standard input whose numbers are in its range.
absl::Status CheckIndices(const Graph& graph, int64_t vocabulary) {
  WEFT_ASSIGN_OR_RETURN(std::vector<IndexUse> uses, IndexUses(graph));
  for (const IndexUse& use : uses) {
    if (!IsIndex(use.kind)) continue;
    const std::string& name = graph.value(use.input).name;
    const StandardInputInfo* input = FindStandardInput(name);
    if (input == nullptr || !IsInRange(use, input->below)) {
      return Illegal(*use.node,
                     absl::StrCat("an index cannot be '", name, "'"));
    }
    if (use.kind != IndexKind::kRowOf || use.below.symbol != Dim::kNumber) {
      continue;
    }
    const int64_t want = input->below == InputBound::kContext
                             ? graph.bounds.context
                             : vocabulary;
    if (use.below.value < want) {
      return Illegal(*use.node, absl::StrCat("a table of ", use.below.value,
                                             " rows for ", want, " numbers"));
    }
  }
  return absl::OkStatus();
}

ValueType RowsOfTokens(const ModelInfo& model) {
  return {
      DType::kF32, {Dim::Tokens(), Dim::Number(model.embedding_length)}, ""};
}

// `block`: of the model's next-token block.
absl::Status CheckInputs(const Graph& graph, const ModelInfo& model,
                         bool block) {
  const int64_t adapters = static_cast<int64_t>(model.adapters.size());
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kInput) continue;
    if (block && value.name == kPreviousHidden &&
        value.type == RowsOfTokens(model)) {
      continue;
    }
    const StandardInputInfo* input = FindStandardInput(value.name);
    if (input == nullptr || !(value.type == TypeOf(input->input, adapters))) {
      return Illegal(value.name, absl::StrCat("no standard input is ",
                                              value.type.ToString()));
    }
  }
  return absl::OkStatus();
}

// The logits (of an encoder: the tokens' vectors) and, besides them, only
// states; and where there is a next-token block, what it reads.
absl::Status CheckModelOutputs(const Graph& graph, const ModelInfo& model,
                               bool has_block) {
  const ValueType want = {
      DType::kF32, {Dim::Rows(), Dim::Number(model.output_columns())}, ""};
  ValueId logits = kNone;
  bool gives_rows = false;
  for (const auto& [name, id] : graph.outputs()) {
    if (IsStateVersion(graph, id)) continue;
    const Node* producer = graph.Producer(id);
    if (has_block && name == kHiddenRows && producer != nullptr &&
        !OpOf(*producer).view && graph.value(id).type == RowsOfTokens(model)) {
      gives_rows = true;
      continue;
    }
    if (name != model.output() || producer == nullptr || OpOf(*producer).view ||
        !(graph.value(id).type == want)) {
      return Illegal(
          name,
          absl::StrCat("output is ", graph.value(id).type.ToString(), ", want ",
                       model.output(), " ", want.ToString(), " and states"));
    }
    logits = id;  // names are unique
  }
  if (logits == kNone) {
    return Illegal("outputs", absl::StrCat("there is no ", model.output()));
  }
  // They lie in the caller's memory.
  if (!graph.Users(logits).empty()) {
    return Illegal(model.output(), "something reads them");
  }
  if (has_block && !gives_rows) {
    return Illegal("outputs", absl::StrCat("there are no ", kHiddenRows));
  }
  return absl::OkStatus();
}

// Logits, rows that may stand for the model's, and states by position.
absl::Status CheckBlockOutputs(const Graph& graph, const ModelInfo& model) {
  bool logits = false, hidden = false;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kState && IsSlotState(value.type)) {
      return Illegal(value.name, "a next-token block with a state by sequence");
    }
  }
  for (const auto& [name, id] : graph.outputs()) {
    if (IsStateVersion(graph, id)) continue;
    const Node* producer = graph.Producer(id);
    const bool is_logits = name == kBlockLogits;
    const int64_t columns =
        is_logits ? model.vocabulary_size : model.embedding_length;
    const ValueType want = {
        DType::kF32, {Dim::Rows(), Dim::Number(columns)}, ""};
    if ((!is_logits && name != kBlockHidden) || producer == nullptr ||
        OpOf(*producer).view || !(graph.value(id).type == want)) {
      return Illegal(name, absl::StrCat("output of a next-token block is ",
                                        graph.value(id).type.ToString(),
                                        ", want ", want.ToString()));
    }
    (is_logits ? logits : hidden) = true;
  }
  if (logits && hidden) return absl::OkStatus();
  return Illegal("outputs", absl::StrCat("a next-token block has no ",
                                         logits ? kBlockHidden : kBlockLogits));
}

// Weights and states in the order of the graph: what buckets share.
std::vector<const Value*> SharedValues(const Graph& graph) {
  std::vector<const Value*> shared;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const ValueKind kind = graph.value(id).kind;
    if (kind == ValueKind::kWeight || kind == ValueKind::kState) {
      shared.push_back(&graph.value(id));
    }
  }
  return shared;
}

absl::Status CheckShared(const Plan& plan) {
  const std::vector<const Value*> first = SharedValues(plan.buckets.front());
  for (const Graph& graph : plan.buckets) {
    const std::vector<const Value*> other = SharedValues(graph);
    const bool same = std::equal(
        first.begin(), first.end(), other.begin(), other.end(),
        [](const Value* a, const Value* b) {
          return a->kind == b->kind && a->name == b->name && a->type == b->type;
        });
    if (!same) {
      return Illegal("buckets", "their weights or states are not the same");
    }
  }
  const Bounds& bounds = plan.buckets.front().bounds;
  int64_t total = 0;
  for (const Value* value : first) {
    total += StorageBytes(value->type, bounds);
    if (total > kMaxBytes) {
      return Illegal(value->name, "weights and states of impossible size");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const Plan& plan) {
  int64_t before = 0;
  for (const Graph& graph : plan.buckets) {
    const Bounds& bounds = graph.bounds;
    if (bounds.tokens <= before || bounds.tokens > kMaxTokens ||
        bounds.rows != bounds.tokens) {
      return Illegal("buckets",
                     absl::StrCat("one is for ", bounds.tokens, " tokens and ",
                                  bounds.rows, " output rows"));
    }
    if (bounds.context > kMaxContext ||
        bounds.context != plan.buckets.front().bounds.context) {
      return Illegal("context",
                     absl::StrCat(bounds.context, " positions, at ", "most ",
                                  kMaxContext, " and the same everywhere"));
    }
    before = bounds.tokens;
  }
  return absl::OkStatus();
}

// What the executor of the block, and who runs it on the model's rows and
// pages, rely on.
absl::Status VerifyNextTokenBlock(const Plan& plan, Isa machine) {
  const Plan block = NextTokenPlan(plan);
  WEFT_RETURN_IF_ERROR(VerifyPlan(block, machine));
  WEFT_RETURN_IF_ERROR(CheckBuckets(block));
  WEFT_RETURN_IF_ERROR(CheckShared(block));
  const int64_t embedding = plan.model.embedding_length;
  if (embedding < 1 || embedding > kMaxEmbedding) {
    return Illegal("next-token block",
                   absl::StrCat("rows of ", embedding, " numbers"));
  }
  if (!plan.model.generates() || block.max_tokens() != plan.max_tokens() ||
      block.context() != plan.context()) {
    return Illegal("next-token block",
                   "it is for other steps or contexts than the model");
  }
  const Graph& last = plan.buckets.back();
  for (const Graph& graph : block.buckets) {
    WEFT_RETURN_IF_ERROR(CheckInputs(graph, plan.model, /*block=*/true));
    WEFT_RETURN_IF_ERROR(CheckBlockOutputs(graph, plan.model));
    WEFT_RETURN_IF_ERROR(CheckIndices(graph, plan.model.vocabulary_size));
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const Value& value = graph.value(id);
      if (value.kind != ValueKind::kWeight) continue;
      const ValueId other = last.FindValue(value.name);
      if (other != kNone && !(last.value(other).type == value.type)) {
        return Illegal(value.name, "another weight than the model's");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyPlan(const Plan& plan, Isa machine) {
  if (plan.buckets.empty()) return Illegal("buckets", "there are none");
  for (const Graph& graph : plan.buckets) {
    WEFT_RETURN_IF_ERROR(VerifyBucket(graph, plan.options, machine));
  }
  return CheckOrders(plan);
}

absl::Status VerifyModelPlan(const Plan& plan, Isa machine) {
  // Bounds first: what kernels need grows with them.
  WEFT_RETURN_IF_ERROR(CheckBuckets(plan));
  WEFT_RETURN_IF_ERROR(VerifyPlan(plan, machine));
  WEFT_RETURN_IF_ERROR(CheckShared(plan));
  for (const AdapterInfo& adapter : plan.model.adapters) {
    if (!std::isfinite(adapter.scale)) {
      return Illegal(adapter.path, "its scale is not finite");
    }
  }
  const int64_t vocabulary = plan.model.vocabulary_size;
  if (vocabulary < 1 || vocabulary > kMaxVocabulary ||
      vocabulary != plan.vocabulary.tokens_size()) {
    return Illegal("vocabulary",
                   absl::StrCat(plan.vocabulary.tokens_size(),
                                " tokens for a model of ", vocabulary));
  }
  const bool has_block = !plan.next_token_buckets.empty();
  for (const Graph& graph : plan.buckets) {
    WEFT_RETURN_IF_ERROR(CheckInputs(graph, plan.model, /*block=*/false));
    WEFT_RETURN_IF_ERROR(CheckModelOutputs(graph, plan.model, has_block));
    WEFT_RETURN_IF_ERROR(CheckIndices(graph, vocabulary));
  }
  return has_block ? VerifyNextTokenBlock(plan, machine) : absl::OkStatus();
}

}  // namespace weft
