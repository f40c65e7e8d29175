// Fuzz target: any text is a graph or an error; a graph prints as text that
// reads back the same, and the verifier tells whether it is legal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "graph/text_format.h"
#include "ops/op_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<weft::Graph> graph =
      weft::Parse(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!graph.ok()) return 0;
  const std::string text = weft::Dump(*graph);
  const absl::StatusOr<weft::Graph> again = weft::Parse(text);
  if (!again.ok() || weft::Dump(*again) != text) std::abort();
  if (!weft::VerifyGraph(*graph).ok()) return 0;
  // What is legal can be asked for its cost.
  for (weft::NodeId id : graph->order()) {
    static_cast<void>(weft::NodeCost(*graph, graph->node(id), graph->bounds));
  }
  return 0;
}
