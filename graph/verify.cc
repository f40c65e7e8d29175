#include "graph/verify.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 32;
constexpr int64_t kMaxElements = int64_t{1} << 40;

absl::Status Illegal(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("illegal graph: ", where, ": ", what));
}

absl::Status CheckBounds(const Bounds& bounds) {
  for (int64_t n : {bounds.tokens, bounds.rows, bounds.context}) {
    if (n < 1 || n > kMaxDim) {
      return Illegal("header", "bounds must be from 1 to 2^32");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckType(const ValueType& type, const Bounds& bounds,
                       absl::string_view where) {
  const Shape& shape = type.shape;
  if (shape.rank() < 1) return Illegal(where, "a value needs a dimension");
  int64_t elements = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i].symbol != Dim::kNumber && shape[i].value != 0) {
      return Illegal(
          where, absl::StrCat("dimension ", i, " is both symbol and number"));
    }
    const int64_t n = shape[i].Resolve(bounds);
    if (n < 1 || n > kMaxDim) {
      return Illegal(
          where, absl::StrCat("dimension ", i, " is ", n, ", want 1 to 2^32"));
    }
    if (elements > kMaxElements / n) {
      return Illegal(where, "more than 2^40 elements");
    }
    elements *= n;
  }
  const int64_t row = shape[shape.rank() - 1].Resolve(bounds);
  const DTypeInfo& info = Info(type.dtype);
  if (row % info.block_elements != 0) {
    return Illegal(where,
                   absl::StrCat("rows of ", row, " elements, but ", info.name,
                                " has blocks of ", info.block_elements));
  }
  return absl::OkStatus();
}

class Verifier {
 public:
  Verifier(const Graph& graph, const OpRules& rules)
      : graph_(graph), rules_(rules) {}

  absl::Status Run() {
    WEFT_RETURN_IF_ERROR(CheckBounds(graph_.bounds));
    made_.assign(graph_.value_count(), false);
    stale_.assign(graph_.value_count(), false);
    WEFT_RETURN_IF_ERROR(CheckSources());
    std::vector<bool> seen(graph_.node_count(), false);
    for (NodeId id : graph_.order()) {
      if (id < 0 || id >= graph_.node_count()) {
        return Illegal("order", absl::StrCat("no node ", id));
      }
      const Node& node = graph_.node(id);
      if (seen[id] || node.erased) {
        return Illegal("order", absl::StrCat("node ", id, " (", node.op->name,
                                             ") twice or erased"));
      }
      seen[id] = true;
      WEFT_RETURN_IF_ERROR(CheckNode(id, node));
    }
    return CheckOutputs();
  }

 private:
  absl::Status CheckSources() {
    std::set<std::string> names;
    for (ValueId id = 0; id < graph_.value_count(); ++id) {
      const Value& value = graph_.value(id);
      if (value.kind == ValueKind::kTemporary) continue;
      if (value.name.empty()) {
        return Illegal("values", absl::StrCat("value ", id, " has no name"));
      }
      if (!names.insert(value.name).second) {
        return Illegal(value.name, "two values have this name");
      }
      WEFT_RETURN_IF_ERROR(CheckType(value.type, graph_.bounds, value.name));
      if (value.producer != kNone) {
        return Illegal(value.name, "is no result, but has a producer");
      }
      if (value.kind == ValueKind::kWeight) {
        for (int i = 0; i < value.type.shape.rank(); ++i) {
          if (value.type.shape[i].symbol != Dim::kNumber) {
            return Illegal(value.name, "dimensions of a weight are numbers");
          }
        }
      }
      if (value.kind == ValueKind::kWeight && !value.data.bytes.empty() &&
          value.type.layout.empty()) {
        const int64_t want = ValueBytes(value.type, graph_.bounds);
        if (static_cast<int64_t>(value.data.bytes.size()) != want) {
          return Illegal(value.name,
                         absl::StrCat("has ", value.data.bytes.size(),
                                      " bytes, its type needs ", want));
        }
      }
      made_[id] = true;
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(NodeId id, const Node& node) {
    const std::string where =
        node.name.empty() ? absl::StrCat(node.op->name, " (node ", id, ")")
                          : absl::StrCat(node.op->name, " (", node.name, ")");
    for (ValueId input : node.inputs) {
      if (input < 0 || input >= graph_.value_count()) {
        return Illegal(where, absl::StrCat("no value ", input));
      }
      if (!made_[input]) {
        return Illegal(where, absl::StrCat("operand ", input,
                                           " is used before it is made"));
      }
      if (stale_[input]) {
        return Illegal(where, "reads a state version that was written since");
      }
    }
    absl::StatusOr<std::vector<ValueType>> types = rules_.Infer(graph_, node);
    if (!types.ok()) return Illegal(where, types.status().message());
    if (types->size() != node.outputs.size()) {
      return Illegal(where, absl::StrCat("has ", node.outputs.size(),
                                         " results, want ", types->size()));
    }
    if (node.op->writes_state) {
      if (node.inputs.empty()) return Illegal(where, "has no state operand");
      stale_[node.inputs[0]] = true;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output < 0 || output >= graph_.value_count()) {
        return Illegal(where, absl::StrCat("no value ", output));
      }
      const Value& value = graph_.value(output);
      if (made_[output] || value.kind != ValueKind::kTemporary ||
          value.producer != id) {
        return Illegal(
            where, absl::StrCat("result ", output, " has another producer"));
      }
      if (!(value.type == (*types)[i])) {
        return Illegal(
            where, absl::StrCat("result is ", value.type.ToString(),
                                ", its rule says ", (*types)[i].ToString()));
      }
      WEFT_RETURN_IF_ERROR(CheckType(value.type, graph_.bounds, where));
      made_[output] = true;
    }
    if (node.op->writes_state) {
      last_versions_.erase(node.inputs[0]);
      last_versions_.insert(node.outputs[0]);
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutputs() {
    if (graph_.outputs().empty()) return Illegal("outputs", "there are none");
    std::set<std::string> names;
    for (const auto& output : graph_.outputs()) {
      if (output.second < 0 || output.second >= graph_.value_count() ||
          !made_[output.second]) {
        return Illegal(output.first, "output is not made by any node");
      }
      if (!names.insert(output.first).second) {
        return Illegal(output.first, "two outputs have this name");
      }
      if (stale_[output.second]) {
        return Illegal(output.first, "output is an old version of its state");
      }
      last_versions_.erase(output.second);
    }
    if (!last_versions_.empty()) {
      return Illegal("outputs", "the last version of a state is missing");
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  const OpRules& rules_;
  std::vector<bool> made_;
  std::vector<bool> stale_;
  std::set<ValueId> last_versions_;
};

}  // namespace

absl::Status Verify(const Graph& graph, const OpRules& rules) {
  return Verifier(graph, rules).Run();
}

}  // namespace weft
