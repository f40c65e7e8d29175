#include "ops/op_table.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/text_format.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

const OpDef* const kOps[] = {
#define WEFT_OP(name) &name,
#include "ops/op_list.h"
#undef WEFT_OP
};

struct Table {
  std::vector<const OpDef*> ops{std::begin(kOps), std::end(kOps)};
  absl::flat_hash_map<absl::string_view, const OpDef*> by_name;

  Table() {
    for (const OpDef* op : ops) by_name.emplace(op->name, op);
  }
};

Table& Ops() {
  static auto* table = new Table;
  return *table;
}

std::atomic<int64_t> table_version{0};

bool IsOpName(absl::string_view name) {
  return !name.empty() && absl::ascii_islower(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

// What the op's record says of every node: as many operands, integers and
// states where it has them, attributes of its own in their ranges.
absl::Status CheckRecord(const Graph& graph, const Node& node) {
  const OpSchema& op = *node.op;
  const int n = static_cast<int>(node.inputs.size());
  const int least = op.least_operands(), most = op.most_operands();
  if (n < least || n > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name, " has ", n, " operands, want ", least,
                     least == most ? ""
                     : most == std::numeric_limits<int>::max()
                         ? " or more"
                         : absl::StrCat(" to ", most)));
  }
  if (node.attributes.schema().data() != op.attributes.data()) {
    return absl::InternalError(
        absl::StrCat(op.name, " has the attributes of another op"));
  }
  WEFT_RETURN_IF_ERROR(node.attributes.Check(op.name));
  for (int i = 0; i < std::min(n, static_cast<int>(op.operands.size())); ++i) {
    const OperandSchema& operand = op.operands[i];
    if (operand.role == OperandRole::kState) {
      WEFT_RETURN_IF_ERROR(WantState(graph, node, i, operand.layout));
    } else if (operand.role == OperandRole::kIndex &&
               operand.index != IndexKind::kChosen &&
               operand.index != IndexKind::kAny) {
      WEFT_RETURN_IF_ERROR(WantIntegers(graph, node, i, operand.rows_of));
    }
  }
  return absl::OkStatus();
}

class Rules : public OpRules {
 public:
  absl::StatusOr<std::vector<ValueType>> Infer(
      const Graph& graph, const Node& node) const override {
    return ResultTypes(graph, node);
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

absl::Span<const OpDef* const> AllOps() { return Ops().ops; }

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
  for (const AttributeSchema& attribute : op->attributes) {
    if (absl::string_view(attribute.name) == "kernel") {
      return error("its attribute kernel: that names a node's kernel");
    }
  }
  Ops().ops.push_back(op);
  Ops().by_name.emplace(op->name, op);
  ++table_version;
  return Registration([op] {
    std::vector<const OpDef*>& ops = Ops().ops;
    ops.erase(std::find(ops.begin(), ops.end(), op));
    Ops().by_name.erase(op->name);
    ++table_version;
  });
}

int64_t OpTableVersion() { return table_version; }

const OpDef* FindOp(absl::string_view name) {
  const auto it = Ops().by_name.find(name);
  return it == Ops().by_name.end() ? nullptr : it->second;
}

const OpSchema* FindOpSchema(absl::string_view name) { return FindOp(name); }

const OpDef& OpOf(const Node& node) {
  return static_cast<const OpDef&>(*node.op);
}

bool IsStateVersion(const Graph& graph, ValueId value) {
  if (graph.value(value).kind == ValueKind::kState) return true;
  const Node* producer = graph.Producer(value);
  return producer != nullptr && producer->op->writes_state &&
         producer->outputs[0] == value;
}

absl::StatusOr<std::vector<ValueType>> ResultTypes(const Graph& graph,
                                                   const Node& node) {
  // By its name, too: an op may be gone since the graph was read.
  if (!node.op->known || FindOp(node.op->name) != node.op) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no op '", node.op->name, "'"));
  }
  WEFT_RETURN_IF_ERROR(CheckRecord(graph, node));
  return OpOf(node).infer(graph, node);
}

absl::StatusOr<Graph> ParseGraph(absl::string_view text) {
  return Parse(text, FindOpSchema);
}

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
    if (!IsStateVersion(graph, output)) {
      cost.bytes += StorageBytes(value.type, bounds);
    }
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
    } else if (IsSlotState(value.type)) {
      // Read and written again, once in a step for each sequence in it: of one.
      cost.bytes += 2 * StorageBytes(value.type, bounds);
    } else if (IsPagedState(value.type)) {
      // The old version of a write is no reading.
      if (!op.writes_state) {
        cost.bytes += KvPageBytes(value.type) * bounds.context / kPageTokens;
      }
    } else {
      cost.bytes += StorageBytes(value.type, bounds);
    }
  }
  if (op.writes_state && IsPagedState(graph.value(node.inputs[0]).type)) {
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
