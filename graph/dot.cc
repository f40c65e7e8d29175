#include "graph/dot.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Inside a quoted DOT string: quotes and backslashes are escaped, control
// characters become spaces, bytes above 127 stay (names of files are UTF-8).
std::string Escape(absl::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

std::string Type(const Value& value) {
  std::string text = value.type.ToString();
  if (value.offset >= 0) absl::StrAppend(&text, " @", value.offset);
  return text;
}

std::string Box(const Graph& graph, const std::vector<int>& numbers,
                const Node& node, size_t place, const CostOf& cost) {
  std::string label = Escape(node.op->name);
  if (!node.name.empty()) absl::StrAppend(&label, "\\n", Escape(node.name));
  for (ValueId id : node.inputs) {
    if (!graph.IsWeight(id)) continue;
    absl::StrAppend(&label, "\\n", Escape(ValueLabel(graph, numbers, id)), " ",
                    Escape(Type(graph.value(id))));
  }
  for (ValueId id : node.outputs) {
    absl::StrAppend(&label, "\\n", ValueLabel(graph, numbers, id), " ",
                    Escape(Type(graph.value(id))));
  }
  if (!node.kernel.empty()) {
    absl::StrAppend(&label, "\\n", Escape(node.kernel));
  }
  if (cost) {
    const ListedCost c = cost(node);
    absl::StrAppend(&label, "\\n", c.operations, " operations, ", c.bytes,
                    " bytes");
  }
  return absl::StrCat("n", place, " [label=\"", label, "\"];\n");
}

}  // namespace

std::string ToDot(const Graph& graph, const NodeFilter& show,
                  const CostOf& cost) {
  const std::vector<int> numbers = NumberValues(graph);
  const std::vector<bool> shown = ShownValues(graph, show);
  std::string text =
      absl::StrCat("digraph \"", Escape(graph.name), "\" {\n", "  label=\"",
                   Escape(graph.name), " tokens<=", graph.bounds.tokens,
                   " context<=", graph.bounds.context, "\";\n",
                   "  node [shape=box, fontname=\"monospace\", fontsize=10];\n"
                   "  edge [fontname=\"monospace\", fontsize=8];\n");
  // Which box makes a value.
  std::map<ValueId, std::string> source;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (!shown[id] ||
        (value.kind != ValueKind::kInput && value.kind != ValueKind::kState)) {
      continue;
    }
    source[id] = absl::StrCat("v", numbers[id]);
    absl::StrAppend(&text, "  ", source[id], " [shape=ellipse, label=\"",
                    Escape(value.name), "\\n", Escape(Type(value)), "\"];\n");
  }
  // By block; -1 first: what stands in none.
  std::map<int, std::string> boxes;
  const std::vector<NodeId>& order = graph.order();
  std::string edges;
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    if (show && !show(node)) continue;
    const int block = BlockOf(node.name);
    absl::StrAppend(&boxes[block], block >= 0 ? "    " : "  ",
                    Box(graph, numbers, node, i, cost));
    for (ValueId id : node.inputs) {
      if (graph.IsWeight(id)) continue;
      if (source.count(id) == 0) {
        source[id] = absl::StrCat("v", numbers[id]);
        absl::StrAppend(&text, "  ", source[id],
                        " [shape=ellipse, style=dashed, label=\"%", numbers[id],
                        "\\n", Escape(Type(graph.value(id))), "\"];\n");
      }
      absl::StrAppend(&edges, "  ", source[id], " -> n", i, " [label=\"%",
                      numbers[id], "\"];\n");
    }
    for (ValueId id : node.outputs) source[id] = absl::StrCat("n", i);
  }
  for (const auto& [block, lines] : boxes) {
    if (block < 0) {
      text += lines;
    } else {
      absl::StrAppend(&text, "  subgraph cluster_blk_", block,
                      " {\n    label=\"blk.", block, "\";\n", lines, "  }\n");
    }
  }
  text += edges;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const auto& [name, id] = graph.outputs()[i];
    if (!shown[id] || source.count(id) == 0) continue;
    absl::StrAppend(&text, "  o", i, " [shape=ellipse, label=\"output ",
                    Escape(name), "\"];\n  ", source[id], " -> o", i,
                    " [label=\"%", numbers[id], "\"];\n");
  }
  return text + "}\n";
}

}  // namespace weft
