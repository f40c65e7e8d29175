#include "cli/html/program_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "passes/lifetimes.h"

namespace weft {
namespace {

using Json = nlohmann::json;

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The weights that a value is computed from, if it is from nothing else.
bool CollectWeights(const Graph& graph, ValueId id,
                    std::vector<std::string>* names) {
  if (graph.IsWeight(id)) {
    names->push_back(graph.value(id).name);
    return true;
  }
  const Node* producer = graph.Producer(id);
  if (producer == nullptr) return false;
  for (ValueId input : producer->inputs) {
    if (!CollectWeights(graph, input, names)) return false;
  }
  return !producer->inputs.empty();
}

}  // namespace

std::string ScriptJson(const Json& json) {
  // These three stand nowhere but in strings.
  return absl::StrReplaceAll(
      Text(json), {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

int ProgramData::Table::Index(const Json& entry) {
  const auto [it, is_new] =
      index_.emplace(Text(entry), static_cast<int>(entries_.size()));
  if (is_new) entries_.push_back(entry);
  return it->second;
}

ProgramData::ProgramData(std::string title,
                         std::optional<KernelOptions> options, NodeFilter show)
    : title_(std::move(title)),
      options_(std::move(options)),
      show_(std::move(show)) {}

void ProgramData::NameAll(const Graph& graph) {
  std::map<std::string, int> seen;
  const auto id_of = [&](std::string key) {
    absl::StrAppend(&key, std::string(1, '\0'), seen[key]++);
    return ids_.emplace(std::move(key), static_cast<int>(ids_.size()))
        .first->second;
  };
  value_ids_.assign(graph.value_count(), -1);
  node_ids_.assign(graph.node_count(), -1);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind == ValueKind::kTemporary) continue;
    value_ids_[id] = id_of(absl::StrCat(KindName(value.kind), " ", value.name));
  }
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    const std::string key =
        absl::StrCat("node ", node.op->name, std::string(1, '\0'), node.name);
    node_ids_[n] = id_of(key);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      value_ids_[node.outputs[i]] =
          id_of(absl::StrCat("result ", node_ids_[n], " ", i));
    }
  }
}

// Of a weight that this point has and the last one made with nodes: a pass
// names it after them.
std::vector<std::string> ProgramData::SourcesOf(
    const std::string& weight) const {
  std::vector<std::string> sources;
  for (NodeId n : last_.order()) {
    const Node& node = last_.node(n);
    std::vector<std::string> names;
    if (node.name == weight && !node.outputs.empty() &&
        CollectWeights(last_, node.outputs[0], &names) &&
        names.size() > sources.size()) {
      sources = std::move(names);
    }
  }
  return sources;
}

int ProgramData::Record(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  Json record = {value_ids_[id],
                 strings_.Index(KindName(value.kind)),
                 strings_.Index(value.name),
                 strings_.Index(value.type.ToString()),
                 StorageBytes(value.type, graph.bounds),
                 value.offset};
  if (value.kind == ValueKind::kWeight) {
    const auto made_of = sources_.find(value.name);
    if (made_of != sources_.end()) {
      Json names = Json::array();
      for (const std::string& name : made_of->second) {
        names.push_back(strings_.Index(name));
      }
      record.push_back(std::move(names));
    }
  }
  return values_.Index(record);
}

int ProgramData::Record(const Graph& graph, NodeId id, const Node& node) {
  const auto ids = [&](const std::vector<ValueId>& values) {
    Json list = Json::array();
    for (ValueId value : values) list.push_back(value_ids_[value]);
    return list;
  };
  Json attributes = Json::array();
  ForEachAttribute(
      node, [&](absl::string_view name, const AttributeValue& attribute) {
        attributes.push_back(std::string(name));
        std::visit([&](const auto& v) { attributes.push_back(v); }, attribute);
      });
  Json refused = Json::array();
  const std::string kernel = node.kernel;
  if (options_ && !kernel.empty()) {
    const KernelChoice choice = ChooseKernel({graph, node, *options_});
    // Another one where choose-kernels was switched off.
    if (choice.entry->name() == kernel) {
      for (const auto& [entry, reason] : choice.refused) {
        refused.push_back({entry->name(), reason});
      }
    }
  }
  const Cost cost = NodeCost(graph, node, graph.bounds);
  return nodes_.Index(Json::array(
      {node_ids_[id], strings_.Index(node.op->name), strings_.Index(node.name),
       ids(node.inputs), ids(node.outputs), attributes_.Index(attributes),
       refusals_.Index(refused), cost.bytes, cost.operations,
       node.scratch_offset}));
}

Json ProgramData::Buffers(const Graph& graph,
                          const std::vector<bool>& shown) const {
  const Lifetimes lifetimes = LifetimesOf(graph);
  Json buffers = Json::array();
  for (size_t i = 0; i < lifetimes.records.size(); ++i) {
    const Lifetime& record = lifetimes.records[i];
    const ValueId value = lifetimes.values[i];
    const NodeId node = lifetimes.nodes[i];
    if (value != kNone && !shown[value]) continue;
    if (node != kNone && show_ && !show_(graph.node(node))) continue;
    buffers.push_back({value == kNone ? -1 : value_ids_[value],
                       node == kNone ? -1 : node_ids_[node],
                       value == kNone ? graph.node(node).scratch_offset
                                      : graph.value(value).offset,
                       record.bytes, record.first, record.last});
  }
  return buffers;
}

void ProgramData::Add(const std::string& label, const Graph& graph) {
  NameAll(graph);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (!graph.IsWeight(id) || value_records_.count(value_ids_[id]) > 0) {
      continue;
    }
    const std::string& name = graph.value(id).name;
    std::vector<std::string> sources = SourcesOf(name);
    if (sources.size() > 1) sources_[name] = std::move(sources);
  }

  const std::vector<bool> shown = ShownValues(graph, show_);
  std::vector<bool> used(graph.value_count(), false);
  Json nodes = Json::array();
  int next_record = -1;
  for (size_t step = 0; step < graph.order().size(); ++step) {
    const NodeId id = graph.order()[step];
    const Node& node = graph.node(id);
    if (show_ && !show_(node)) {
      next_record = -1;
      continue;
    }
    for (ValueId value : node.inputs) used[value] = true;
    for (ValueId value : node.outputs) used[value] = true;
    const int record = Record(graph, id, node);
    if (record == next_record) {
      nodes.back()[1] = nodes.back()[1].get<int>() + 1;
    } else {
      nodes.push_back({record, 1, step});
    }
    next_record = record + 1;
  }
  Json values = Json::array(), outputs = Json::array();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (!used[id] && (show_ || graph.value(id).kind != ValueKind::kInput)) {
      continue;
    }
    const int record = Record(graph, id);
    const auto [it, is_new] = value_records_.emplace(value_ids_[id], record);
    if (!is_new && it->second == record) continue;
    it->second = record;
    values.push_back(record);
  }
  for (const auto& [name, id] : graph.outputs()) {
    if (used[id]) {
      outputs.push_back({strings_.Index(name), value_ids_[id]});
    }
  }
  Json point = {{"label", label},
                {"nodes", std::move(nodes)},
                {"total", graph.order().size()},
                {"values", std::move(values)},
                {"outputs", std::move(outputs)}};
  if (graph.arena.bytes >= 0) {
    point["arena"] = {graph.arena.bytes, graph.arena.lower_bound,
                      graph.arena.sum_of_intermediates};
    point["buffers"] = Buffers(graph, shown);
  }
  points_.push_back(std::move(point));
  last_ = graph;
}

Json ProgramData::ToJson() const {
  return {{"title", title_},
          {"name", last_.name},
          {"tokens", last_.bounds.tokens},
          {"context", last_.bounds.context},
          {"strings", strings_.entries()},
          {"attributes", attributes_.entries()},
          {"refusals", refusals_.entries()},
          {"values", values_.entries()},
          {"nodes", nodes_.entries()},
          {"points", points_}};
}

}  // namespace weft
