#include "graph/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

constexpr absl::string_view kKernelName = "kernel";

}  // namespace

std::string ValueType::ToString() const {
  std::string text = absl::StrCat(Info(dtype).name, shape.ToString());
  if (!layout.empty()) absl::StrAppend(&text, "{", layout, "}");
  return text;
}

ValueId Graph::AddValue(Value value) {
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Graph::AddInput(std::string name, ValueType type) {
  Value value;
  value.kind = ValueKind::kInput;
  value.type = std::move(type);
  value.name = std::move(name);
  return AddValue(std::move(value));
}

ValueId Graph::AddState(std::string name, ValueType type) {
  Value value;
  value.kind = ValueKind::kState;
  value.type = std::move(type);
  value.name = std::move(name);
  return AddValue(std::move(value));
}

ValueId Graph::AddWeight(std::string name, ValueType type, WeightData data) {
  Value value;
  value.kind = ValueKind::kWeight;
  value.type = std::move(type);
  value.name = std::move(name);
  value.data = std::move(data);
  return AddValue(std::move(value));
}

NodeId Graph::AddNode(Node node, std::vector<ValueType> results,
                      NodeId before) {
  const NodeId id = static_cast<NodeId>(nodes_.size());
  for (ValueType& type : results) {
    Value value;
    value.type = std::move(type);
    value.producer = id;
    node.outputs.push_back(AddValue(std::move(value)));
  }
  nodes_.push_back(std::move(node));
  order_.insert(before == kNone
                    ? order_.end()
                    : std::find(order_.begin(), order_.end(), before),
                id);
  return id;
}

void Graph::RemoveOutput(absl::string_view name) {
  outputs_.erase(
      std::remove_if(outputs_.begin(), outputs_.end(),
                     [&](const auto& output) { return output.first == name; }),
      outputs_.end());
}

void Graph::AddOutput(std::string name, ValueId value) {
  outputs_.emplace_back(std::move(name), value);
}

ValueId Graph::FindValue(absl::string_view name) const {
  for (ValueId id = 0; id < value_count(); ++id) {
    if (values_[id].name == name) return id;
  }
  return kNone;
}

std::string Graph::FreeName(const std::string& name) const {
  std::string free = name;
  for (int n = 2; FindValue(free) != kNone; ++n) {
    free = absl::StrCat(name, ".", n);
  }
  return free;
}

const Node* Graph::Producer(ValueId id) const {
  const NodeId producer = values_[id].producer;
  return producer == kNone ? nullptr : &nodes_[producer];
}

NodeId Graph::ProducerOf(ValueId id, const OpSchema& op) const {
  const Node* producer = Producer(id);
  return producer != nullptr && producer->Is(op) ? values_[id].producer : kNone;
}

std::vector<NodeId> Graph::Users(ValueId id) const {
  std::vector<NodeId> users;
  for (NodeId n : order_) {
    const std::vector<ValueId>& inputs = nodes_[n].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) {
      users.push_back(n);
    }
  }
  return users;
}

NodeId Graph::OnlyUser(ValueId id) const {
  if (IsOutput(id)) return kNone;
  NodeId user = kNone;
  for (NodeId n : order_) {
    const std::vector<ValueId>& inputs = nodes_[n].inputs;
    const auto count = std::count(inputs.begin(), inputs.end(), id);
    if (count == 0) continue;
    if (count > 1 || user != kNone) return kNone;
    user = n;
  }
  return user;
}

bool Graph::IsOutput(ValueId id) const {
  for (const auto& output : outputs_) {
    if (output.second == id) return true;
  }
  return false;
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (NodeId n : order_) {
    for (ValueId& input : nodes_[n].inputs) {
      if (input == from) input = to;
    }
  }
  for (auto& output : outputs_) {
    if (output.second == from) output.second = to;
  }
}

void Graph::Erase(NodeId id) {
  nodes_[id].erased = true;
  order_.erase(std::find(order_.begin(), order_.end(), id));
}

int Graph::EraseDead() {
  std::vector<bool> live(values_.size(), false);
  for (const auto& output : outputs_) live[output.second] = true;
  std::vector<NodeId> kept;
  int erased = 0;
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    Node& node = nodes_[*it];
    const bool needed =
        std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId output) { return live[output]; });
    if (!needed) {
      node.erased = true;
      ++erased;
      continue;
    }
    for (ValueId input : node.inputs) live[input] = true;
    kept.push_back(*it);
  }
  order_.assign(kept.rbegin(), kept.rend());
  return erased;
}

Graph Graph::Compact() const {
  Graph result;
  result.name = name;
  result.bounds = bounds;
  result.arena = arena;
  std::vector<bool> used(values_.size(), false);
  for (NodeId n : order_) {
    for (ValueId v : nodes_[n].inputs) used[v] = true;
    for (ValueId v : nodes_[n].outputs) used[v] = true;
  }
  for (const auto& output : outputs_) used[output.second] = true;
  std::vector<ValueId> renamed(values_.size(), kNone);
  const auto copy_value = [&](ValueId id) {
    renamed[id] = result.AddValue(values_[id]);
    result.values_.back().producer = kNone;
  };
  for (ValueKind kind :
       {ValueKind::kWeight, ValueKind::kInput, ValueKind::kState}) {
    for (ValueId id = 0; id < value_count(); ++id) {
      // Inputs stay even when nothing reads them: they are how a step is
      // called.
      if (values_[id].kind == kind && (used[id] || kind == ValueKind::kInput)) {
        copy_value(id);
      }
    }
  }
  for (NodeId n : order_) {
    Node node = nodes_[n];
    const NodeId id = static_cast<NodeId>(result.nodes_.size());
    for (ValueId& input : node.inputs) input = renamed[input];
    for (ValueId& output : node.outputs) {
      copy_value(output);
      output = renamed[output];
      result.values_[output].producer = id;
    }
    result.nodes_.push_back(std::move(node));
    result.order_.push_back(id);
  }
  for (const auto& output : outputs_) {
    result.AddOutput(output.first, renamed[output.second]);
  }
  return result;
}

void ForEachAttribute(
    const Node& node,
    const std::function<void(absl::string_view name,
                             const AttributeValue& value)>& call) {
  bool told = node.kernel.empty();
  const auto tell_kernel = [&] {
    if (!told) call(kKernelName, node.kernel);
    told = true;
  };
  node.attributes.ForEach(
      [&](absl::string_view name, const AttributeValue& value) {
        if (name > kKernelName) tell_kernel();
        call(name, value);
      });
  tell_kernel();
}

absl::StatusOr<Node> MakeNode(
    absl::string_view op,
    absl::Span<const std::pair<std::string, AttributeValue>> attributes,
    OpLookup find) {
  std::vector<std::pair<std::string, AttributeValue>> own;
  std::string kernel;
  for (const auto& [name, value] : attributes) {
    if (name != kKernelName) {
      own.emplace_back(name, value);
      continue;
    }
    const std::string* text = std::get_if<std::string>(&value);
    if (text == nullptr || !kernel.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(op, " kernel: want one text in quotes"));
    }
    kernel = *text;
  }
  const OpSchema* schema = find(op);
  std::shared_ptr<const OpSchema> unknown;
  if (schema == nullptr) {
    unknown = MakeUnknownOp(op, own);
    schema = unknown.get();
  }
  Node node(*schema);
  node.unknown_op = std::move(unknown);
  node.kernel = std::move(kernel);
  for (auto& [name, value] : own) {
    WEFT_RETURN_IF_ERROR(node.attributes.Set(op, name, std::move(value)));
  }
  return node;
}

int64_t ValueBytes(const ValueType& type, const Bounds& bounds) {
  const DTypeInfo& info = Info(type.dtype);
  return type.shape.Elements(bounds) / info.block_elements * info.block_bytes;
}

}  // namespace weft
