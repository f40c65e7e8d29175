// Graphs of one node for every entry of the kernel table: what there is to
// measure and to test.
//
// An op has a few lines of graph text with holes for types, layouts and sizes;
// an entry gets every filling that it does not refuse. So a new kernel of an op
// that is known needs no line here, and neither does a new weight type, nor an
// element-wise op without attributes.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/kernels/kernel_table.h"

namespace weft {

// Of the tensors; TinyLlama's by default.
struct CaseSizes {
  int64_t columns = 2048;  // of the residual stream
  int64_t inner = 5632;    // of the feed-forward network
  int64_t heads = 32;
  int64_t kv_heads = 4;
  int64_t head_dim = 64;
  int64_t context = 2048;
  // Matrices of inputs are windows into ones that have so many columns more;
  // ops that do not take those have no case then.
  int64_t around = 0;
};

struct KernelCase {
  std::string name;  // the entry's, and after slashes what it leaves open
  const KernelEntry* entry;
  Graph graph;  // legal; the node is the last, what it reads comes before
  int64_t tokens;

  NodeView view() const {
    return {graph, graph.node(graph.order().back()), {entry->isa()}};
  }
};

// None where the entry refuses all; then `why` has its last reason.
std::vector<KernelCase> CasesOf(const KernelEntry& entry, int64_t tokens,
                                const CaseSizes& sizes, std::string* why);

}  // namespace weft
