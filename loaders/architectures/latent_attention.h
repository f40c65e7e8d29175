// Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section
// 2.1), for the architectures that have it.
//
// Keys and values of all heads are products of one row per token, the latent.
// The cache holds that row, and beside it one rotated key that all heads share:
// rank + rotated numbers in place of heads * (key + value). The heads' matrices
// meet the queries and the results of attention instead ("absorbed"): with
// k_h = K_h c and v_h = V_h c,
//   q . k_h = (K_h^T q) . c       sum of p v_h = V_h (sum of p c)
//
// Files have the matrices as converters wrote them: joined, each head's rows of
// K_h and then of V_h (attn_kv_b), or apart, K_h transposed already (attn_k_b,
// attn_v_b; where a file has both forms these are taken).
#pragma once

#include <vector>

#include "loaders/architectures/architecture.h"

namespace weft {

struct LatentAttentionOptions {
  int64_t query_rank = 0;  // of attn_q_a; 0: queries are one product, attn_q
  int64_t rank = 0;        // of the latent
  // Of each head: what meets the latent, what meets the shared key, and of its
  // result.
  int64_t key_length = 0;
  int64_t rotated_length = 0;
  int64_t value_length = 0;
  double scale = 1;  // of scores
  RopeOptions rope;  // of heads of rotated_length; 0 of rope_dims: none turns
};

// What the file's keys say, with pairs of neighbours that turn; and the keys.
LatentAttentionOptions LatentAttentionOf(ModelBuilder& m);
std::vector<ModelKey> LatentKeys();

// Of rows x, which have embedding_length columns, and normed; with attn_output.
ValueId LatentAttention(ModelBuilder& m, int64_t block, ValueId x,
                        const LatentAttentionOptions& options);

}  // namespace weft
