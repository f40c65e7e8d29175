// Products and joins of each head by itself.
//
//   head_matmul(x f32[M,H*K], weight [H*N,K]) heads
//       f32[M,H*N]: each of the H parts of a row times its own matrix; these
//       stand one below the other
//   concat_heads(a f32[M,H*A], b f32[M,H*B]) heads
//       f32[M,H*(A+B)]: each head of a, then of b
//
// Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434) is written
// in these: keys and values of all heads are products of one latent row, and by
// associativity it is the queries and the results of attention that meet the
// heads' matrices, not every cached row.
#pragma once

#include "graph/graph.h"

namespace weft {

// Requires a head_matmul of a verified graph.
struct HeadParts {
  int64_t heads = 0;
  int64_t depth = 0;        // K
  int64_t weight_rows = 0;  // N
};
HeadParts HeadPartsOf(const Graph& graph, const Node& node);

// Of an attention whose values are its keys and whose queries and results meet
// head_matmul: the bytes of a page of keys and values of all heads that those
// rows stand for. Of any other node, 0.
int64_t PageBytesOfHeads(const Graph& graph, const Node& node);

}  // namespace weft
