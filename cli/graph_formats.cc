#include "cli/graph_formats.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/command.h"
#include "cli/filter_process.h"
#include "cli/onnx_export.h"
#include "graph/dot.h"
#include "graph/json.h"
#include "graph/serialize.h"
#include "graph/text_format.h"
#include "ops/op_table.h"

namespace weft {
namespace {

const std::vector<std::string>& Formats() {
  static const auto* formats = new std::vector<std::string>{
      "text", "dot", "svg", "json", "html", "pb", "onnx"};
  return *formats;
}

// Messages: bytes for programs.
bool IsBinary(const std::string& format) {
  return format == "pb" || format == "onnx";
}

absl::StatusOr<std::string> ToSvg(const std::string& dot) {
  absl::StatusOr<std::string> svg = FilterThrough({"dot", "-Tsvg"}, dot);
  if (absl::IsNotFound(svg.status())) {
    return absl::NotFoundError(
        "cannot draw svg: Graphviz's program dot is not on PATH: install "
        "Debian's package graphviz, or use --format html");
  }
  return svg;
}

}  // namespace

std::string FormatNames() { return absl::StrJoin(Formats(), ", "); }

absl::Status CheckFormat(const std::string& format, const std::string& path,
                         bool has_layers) {
  const std::vector<std::string>& formats = Formats();
  if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
    return UsageError(absl::StrCat("--format: unknown format '", format,
                                   "': use one of ", FormatNames()));
  }
  if (!IsBinary(format)) return absl::OkStatus();
  if (has_layers) {
    return UsageError(absl::StrCat("--layers: ", format,
                                   " holds whole graphs: leave it out"));
  }
  if (path.empty() && isatty(STDOUT_FILENO)) {
    return UsageError(absl::StrCat("--format: ", format,
                                   " is not for terminals: give -o FILE"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteGraph(const Graph& graph,
                                       const std::string& format,
                                       const NodeFilter& show) {
  const CostOf cost = [&](const Node& node) {
    const Cost c = NodeCost(graph, node, graph.bounds);
    return ListedCost{c.bytes, c.operations};
  };
  if (format == "dot") return ToDot(graph, show, cost);
  if (format == "svg") return ToSvg(ToDot(graph, show, cost));
  if (format == "json") return ToJson(graph, show, cost);
  if (format == "onnx") return ToOnnx(graph);
  if (format == "pb") return ToProto(graph).SerializeAsString();
  return Dump(graph, {show, nullptr});
}

}  // namespace weft
