#include "graph/json.h"

#include "nlohmann/json.hpp"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

Json ValueJson(const Value& value, const std::string& id) {
  Json shape = Json::array();
  for (int i = 0; i < value.type.shape.rank(); ++i) {
    const Dim& dim = value.type.shape[i];
    shape.push_back(dim.symbol == Dim::kNumber ? Json(dim.value)
                                               : Json(dim.ToString()));
  }
  Json json = {{"id", id}, {"kind", KindName(value.kind)}};
  if (!value.name.empty()) json["name"] = value.name;
  json["dtype"] = Info(value.type.dtype).name;
  json["shape"] = std::move(shape);
  if (!value.type.layout.empty()) json["layout"] = value.type.layout;
  if (value.offset >= 0) json["offset"] = value.offset;
  return json;
}

Json NodeJson(const Graph& graph, const Node& node,
              const std::vector<int>& numbers, const CostOf& cost) {
  const auto labels = [&](const std::vector<ValueId>& ids) {
    Json list = Json::array();
    for (ValueId id : ids) list.push_back(ValueLabel(graph, numbers, id));
    return list;
  };
  Json json = {{"op", node.op->name}, {"name", node.name}};
  if (const int block = BlockOf(node.name); block >= 0) json["block"] = block;
  json["inputs"] = labels(node.inputs);
  json["outputs"] = labels(node.outputs);
  Json attributes = Json::object();
  ForEachAttribute(
      node, [&](absl::string_view name, const AttributeValue& value) {
        std::visit([&](const auto& v) { attributes[std::string(name)] = v; },
                   value);
      });
  json["attributes"] = std::move(attributes);
  if (cost) {
    const ListedCost c = cost(node);
    json["cost"] = {{"bytes", c.bytes}, {"operations", c.operations}};
  }
  if (node.scratch_offset >= 0) json["scratch_offset"] = node.scratch_offset;
  return json;
}

}  // namespace

std::string ToJson(const Graph& graph, const NodeFilter& show,
                   const CostOf& cost) {
  const std::vector<int> numbers = NumberValues(graph);
  const std::vector<bool> shown = ShownValues(graph, show);
  Json json = {{"name", graph.name},
               {"bounds",
                {{"tokens", graph.bounds.tokens},
                 {"rows", graph.bounds.rows},
                 {"context", graph.bounds.context}}}};
  if (graph.arena.bytes >= 0) {
    json["arena"] = {
        {"bytes", graph.arena.bytes},
        {"lower_bound", graph.arena.lower_bound},
        {"sum_of_intermediates", graph.arena.sum_of_intermediates}};
  }
  Json values = Json::array(), nodes = Json::array(), outputs = Json::array();
  const auto add_value = [&](ValueId id) {
    if (!shown[id]) return;
    values.push_back(
        ValueJson(graph.value(id), ValueLabel(graph, numbers, id)));
  };
  for (ValueKind kind :
       {ValueKind::kWeight, ValueKind::kInput, ValueKind::kState}) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      if (graph.value(id).kind == kind) add_value(id);
    }
  }
  int left_out = 0;
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    for (ValueId id : node.outputs) add_value(id);
    if (show && !show(node)) {
      ++left_out;
    } else {
      nodes.push_back(NodeJson(graph, node, numbers, cost));
    }
  }
  for (const auto& [name, value] : graph.outputs()) {
    if (!shown[value]) continue;
    outputs.push_back(
        {{"name", name}, {"value", ValueLabel(graph, numbers, value)}});
  }
  json["values"] = std::move(values);
  json["nodes"] = std::move(nodes);
  if (show) json["nodes_left_out"] = left_out;
  json["outputs"] = std::move(outputs);
  // Names come from files: what is no UTF-8 in them must not fail here.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft
