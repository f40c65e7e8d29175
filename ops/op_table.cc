#include "ops/op_table.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// The primitives in the order of a model, then what passes make of them.
const OpDef* const kOps[] = {
    &kEmbedOp,
    &kRmsNormOp,
    &kLayerNormOp,
    &kMatmulOp,
    &kAddOp,
    &kMulOp,
    &kScaleOp,
    &kSoftcapOp,
    &kSiluOp,
    &kGeluOp,
    &kRopeOp,
    &kKvWriteOp,
    &kAttentionScoresOp,
    &kSoftmaxOp,
    &kAttentionValuesOp,
    &kTakeRowsOp,
    &kSliceOp,
    &kSigmoidOp,
    &kTopKOp,
    &kExpertMatmulOp,
    &kWeightedSumOp,
    // Made by passes.
    &kQuantizeRowsOp,
    &kRmsNormQuantizeOp,
    &kLayerNormQuantizeOp,
    &kFusedMatmulOp,
    &kFusedExpertMatmulOp,
    &kSiluGateOp,
    &kGeluGateOp,
    &kAttentionOp,
    &kRopeKvWriteOp,
    &kConcatRowsOp,
    &kInterleaveRowsOp,
    &kPackWeightOp,
};

std::vector<const OpDef*>& Table() {
  static auto* ops =
      new std::vector<const OpDef*>(std::begin(kOps), std::end(kOps));
  return *ops;
}

std::atomic<int64_t> table_version{0};

bool IsOpName(absl::string_view name) {
  return !name.empty() && absl::ascii_islower(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

class Rules : public OpRules {
 public:
  absl::StatusOr<std::vector<ValueType>> Infer(
      const Graph& graph, const Node& node) const override {
    const OpDef* op = FindOp(node.op);
    if (op == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no op '", node.op, "'"));
    }
    return op->infer(graph, node);
  }

  bool WritesState(const Node& node) const override {
    const OpDef* op = FindOp(node.op);
    return op != nullptr && op->writes_state;
  }
};

// What graph/ cannot check: it knows no layouts. Types of results follow from
// their ops' rules.
absl::Status CheckLayout(const Value& value) {
  const ValueType& type = value.type;
  bool good = type.layout.empty();
  if (value.kind == ValueKind::kState) {
    good = IsStateType(type);
  } else if (value.kind == ValueKind::kWeight && !good) {
    const WeightLayout* layout = FindWeightLayout(type.layout);
    good =
        layout != nullptr && type.shape.rank() == 2 &&
        layout->supports(type.dtype, type.shape[0].value, type.shape[1].value);
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "illegal graph: ", value.name, ": cannot be ", type.ToString()));
}

}  // namespace

absl::Span<const OpDef* const> AllOps() { return Table(); }

absl::StatusOr<Registration> RegisterOp(const OpDef* op) {
  const auto error = [op](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot register op: ",
        op != nullptr && op->name != nullptr ? op->name : "?", ": ", what));
  };
  if (op == nullptr || op->name == nullptr || !IsOpName(op->name)) {
    return error("give it a name of lower-case letters, digits and _");
  }
  if (FindOp(op->name) != nullptr) {
    return error("there is one of this name: choose another");
  }
  if (op->view) return error("it is a view: make it a node with a result");
  if (op->infer == nullptr) return error("give it a rule for its results");
  if (op->reference == nullptr) return error("give it a reference function");
  Table().push_back(op);
  ++table_version;
  return Registration([op] {
    Table().erase(std::find(Table().begin(), Table().end(), op));
    ++table_version;
  });
}

int64_t OpTableVersion() { return table_version; }

const OpDef* FindOp(absl::string_view name) {
  for (const OpDef* op : Table()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

const OpDef& OpOf(const Node& node) { return *FindOp(node.op); }

const OpRules& TableRules() {
  static const Rules* rules = new Rules;
  return *rules;
}

absl::Status VerifyGraph(const Graph& graph) {
  WEFT_RETURN_IF_ERROR(Verify(graph, TableRules()));
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kTemporary) continue;
    WEFT_RETURN_IF_ERROR(CheckLayout(value));
  }
  return absl::OkStatus();
}

Cost NodeCost(const Graph& graph, const Node& node, const Bounds& bounds) {
  const OpDef& op = OpOf(node);
  Cost cost;
  if (op.view) return cost;
  int64_t elements = 0;
  for (ValueId output : node.outputs) {
    const Value& value = graph.value(output);
    elements += value.type.shape.Elements(bounds);
    if (!op.writes_state) cost.bytes += StorageBytes(value.type, bounds);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& value = graph.value(node.inputs[i]);
    const int64_t taken =
        op.rows_read == nullptr
            ? -1
            : op.rows_read(graph, node, static_cast<int>(i), bounds);
    if (taken >= 0) {
      const int64_t rows = value.type.shape[0].Resolve(bounds);
      // Whole rows, and what panels add to them.
      cost.bytes += std::min(taken, rows) *
                    ((StorageBytes(value.type, bounds) + rows - 1) / rows);
    } else if (IsStateType(value.type)) {
      // The old version of a write is no reading.
      if (!op.writes_state) {
        cost.bytes += KvPageBytes(value.type) * bounds.context / kPageTokens;
      }
    } else {
      cost.bytes += StorageBytes(value.type, bounds);
    }
  }
  if (op.writes_state) {
    // The rows that are written, in the state's type.
    const ValueType& state = graph.value(node.inputs[0]).type;
    elements = bounds.tokens * state.shape.RowElements(bounds);
    cost.bytes += elements / Info(state.dtype).block_elements *
                  Info(state.dtype).block_bytes;
  }
  cost.operations =
      op.operations != nullptr ? op.operations(graph, node, bounds) : elements;
  return cost;
}

}  // namespace weft
