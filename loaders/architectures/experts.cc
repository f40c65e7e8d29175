#include "loaders/architectures/experts.h"

namespace weft {

ValueId Experts(ModelBuilder& m, const std::string& block, ValueId x,
                bool normalize) {
  const ModelConfig& c = m.config;
  const int64_t n = c.expert_count;
  const int64_t d = c.embedding_length;
  const int64_t f = c.expert_feed_forward_length;
  const ValueId gate_weight = m.ExpertMatrix(block + "ffn_gate_exps", n, f, d);
  const ValueId up_weight = m.ExpertMatrix(block + "ffn_up_exps", n, f, d);
  const ValueId down_weight = m.ExpertMatrix(block + "ffn_down_exps", n, d, f);

  const ValueId scores = m.Linear(block + "ffn_gate_inp", x, n, d);
  m.Name(block + "ffn_router");
  const Chosen chosen =
      m.TopK(m.Softmax(scores), c.expert_used_count, normalize);

  m.Name(block + "ffn_gate_exps");
  const ValueId gate = m.ExpertMatmul(x, gate_weight, chosen.ids, n);
  m.Name(block + "ffn_up_exps");
  const ValueId up = m.ExpertMatmul(x, up_weight, chosen.ids, n);
  m.Name(block + "ffn_act_exps");
  const ValueId hidden = m.Mul(m.Silu(gate), up);
  m.Name(block + "ffn_down_exps");
  const ValueId down = m.ExpertMatmul(hidden, down_weight, chosen.ids, n);
  m.Name(block + "ffn_experts");
  return m.WeightedSum(down, chosen.weights);
}

}  // namespace weft
