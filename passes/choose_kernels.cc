// Writes the kernel of every node into the graph.
//
//   %4 = matmul(%3, $w)    ->    %4 = matmul(%3, $w) kernel="matmul_q4_0_..."
//
// One weight's products must be summed in one order for every token count, or
// results would depend on the batch: the order of the kernel for one token
// rules.
#include "absl/strings/str_cat.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "passes/pass.h"

namespace weft {

absl::Status ChooseKernels(Graph& graph, const PassOptions& options) {
  const Bounds bounds = graph.bounds;
  const auto choose = [&](const Node& node) {
    return ChooseKernel({graph, node, options.kernels}).entry;
  };
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (OpOf(node).view) continue;
    const KernelEntry* entry = choose(node);
    graph.bounds.tokens = graph.bounds.rows = 1;
    const KernelEntry* decode = choose(node);
    graph.bounds = bounds;
    if (entry->summation() != decode->summation()) {
      return absl::InternalError(
          absl::StrCat("kernels ", entry->name(), " and ", decode->name(),
                       " of ", node.name, " sum in different orders"));
    }
    node.kernel = entry->name();
  }
  return absl::OkStatus();
}

}  // namespace weft
