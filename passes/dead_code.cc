// Removes what nothing reads.
//
//   %2 = silu(%1)                       %3 = add(%1, %1)
//   %3 = add(%1, %1)            ->      output y = %3
//   output y = %3
//
// Writes of state stay: the last version of every state is a graph output.
#include "passes/pass.h"

namespace weft {

absl::Status DeadCode(Graph& graph, const PassOptions&) {
  graph.EraseDead();
  return absl::OkStatus();
}

}  // namespace weft
