// Products with one matrix of several for each row: mixture of experts
// (Shazeer et al. 2017, arXiv:1701.06538; Jiang et al. 2024,
// arXiv:2401.04088).
//
//   ids, p = top_k(x [M,E], [bias f32[E]]) k normalize ...
//       the k largest of each row of x + bias, largest first and the lower
//       column where two are equal, and what x is there; with normalize=1
//       divided by their sum. With groups, only columns of the best groups are
//       chosen (DeepSeek-AI 2024, arXiv:2412.19437, section 2.1.2). With a
//       margin, p is SparseMixer's at inference (Liu et al. 2023,
//       arXiv:2310.00811; as in Phi-3.5-MoE). What comes before (softmax,
//       sigmoid) and after (softmax, scale) are ops of their own.
//   expert_matmul(x [M,K], weight [E*N,K], ids [M,k]) experts
//       f32[M,k*N]: for each of a row's k experts in turn, x times that
//       expert's matrix. The matrices of all experts stand one below the other.
//       With x of [M,k*K], the i-th K columns meet the i-th expert.
//   expert_add(x f32[M,k*N], bias f32[E*N], ids [M,k]) experts
//       x + each of a row's k experts' part of bias; expert_mul: times it
//   weighted_sum(x f32[M,k*D], p f32[M,k])
//       f32[M,D]: the k parts of a row, each times its number, added in order
//
// `ids` is always a result of top_k: so kernels need not check it, and the k
// experts of a row are distinct. fused_expert_matmul(x, weight, ids, [bias]) is
// an expert_matmul with the bias and the epilogues of fused_matmul.h, but for
// the residual; of a gate, each expert's rows are 16 of gate and 16 of up in
// turn, and so are its biases.
#pragma once

#include "graph/graph.h"
#include "ops/fused_matmul.h"

namespace weft {

// Experts that a router may choose from.
constexpr int64_t kMaxExperts = 1024;

// Also describes a plain expert_matmul.
struct ExpertParts {
  int64_t experts = 0;  // E
  int64_t used = 0;     // k
  // Rows of one expert's matrix.
  int64_t weight_rows = 0;
  // Result columns for one expert: weight_rows, or half of them for a gate.
  int64_t columns = 0;
  // Whether the k experts of a row have the same operand.
  bool shared = true;
  MatmulEpilogue epilogue = MatmulEpilogue::kStore;
  GateParts gate;
  bool bias = false;  // operand 3
};

bool IsExpertMatmul(const Node& node);
// This, or a product with one weight for all rows (fused_matmul.h): operand 1
// is a weight that is read through its layout.
bool IsProduct(const Node& node);

// Requires such a node of a verified graph.
ExpertParts ExpertPartsOf(const Graph& graph, const Node& node);

// Matrices that a step of so many rows reads at most.
int64_t ExpertsRead(const ExpertParts& parts, int64_t rows);

}  // namespace weft
