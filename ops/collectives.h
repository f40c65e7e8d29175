// Values of which every rank has a part: tensor parallelism (Shoeybi et al.
// 2019, arXiv:1909.08053), cut so that no sum is.
//
//   all_gather(x [M,c]) rank ranks units parts columns
//       [M,C]: what all ranks have of each row, side by side. A row is `parts`
//       equal parts (k experts, say; else 1); each part is `units` equal units,
//       of which a rank has those of ShareOf(units, rank, ranks), in order. f32
//       or rounded rows alike: these are moved as they lie.
//
// Who runs such a node has got what the others have in the node's scratch
// memory, rank after rank (runtime/ranks/communicator.h); the kernel puts it in
// place.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "ops/attributes.h"

namespace weft {

// A rank's units, of all that there are. Ranks differ by one at most.
struct Share {
  int64_t begin = 0;
  int64_t size = 0;
};
inline Share ShareOf(int64_t units, int64_t rank, int64_t ranks) {
  const int64_t begin = units * rank / ranks;
  return {begin, units * (rank + 1) / ranks - begin};
}

// Bytes that `rank` gives for each row to an all_gather of a verified graph.
int64_t GatheredRowBytes(const Graph& graph, const Node& node, int64_t rank);

}  // namespace weft
