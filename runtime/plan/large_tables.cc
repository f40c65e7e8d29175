#include "runtime/plan/large_tables.h"

#include <algorithm>
#include <vector>

#include "ops/ops.h"
#include "ops/storage.h"

namespace weft {

bool StaysInFile(const Graph& graph, ValueId weight) {
  if (StorageBytes(graph.value(weight).type, graph.bounds) <=
      kMostResidentTableBytes) {
    return false;
  }
  const std::vector<NodeId> users = graph.Users(weight);
  return !users.empty() &&
         std::all_of(users.begin(), users.end(), [&](NodeId user) {
           return graph.node(user).Is(kEmbedOp);
         });
}

int64_t BytesLeftInFile(const Graph& graph) {
  int64_t bytes = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.IsWeight(id) && StaysInFile(graph, id)) {
      bytes += StorageBytes(graph.value(id).type, graph.bounds);
    }
  }
  return bytes;
}

}  // namespace weft
