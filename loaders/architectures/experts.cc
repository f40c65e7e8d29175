#include "loaders/architectures/experts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using Score = ExpertOptions::Score;

// The published SparseMixer's, twice its jitter.
constexpr double kMixerMargin = 0.02;

// The matrices of all experts with what is added to their products.
struct ExpertWeights {
  ValueId matrix = kNone;
  ValueId factors = kNone;  // kNone: nothing
  ValueId bias = kNone;     // likewise
};

Chosen ChooseExperts(ModelBuilder& m, const std::string& block, ValueId logits,
                     const ExpertOptions& o) {
  const ModelConfig& c = m.config;
  TopKAttributes choice;
  choice.k = c.expert_used_count;
  // A softmax of the chosen has the sum 1, and their logits are no weights.
  choice.normalize = o.normalize && o.score != Score::kSoftmaxOfChosen;
  choice.least_sum = choice.normalize ? o.least_sum : 0;
  if (o.groups_used < o.groups) {
    choice.groups = o.groups;
    choice.groups_used = o.groups_used;
    choice.group_best = std::min(o.group_best, c.expert_count / o.groups);
  }
  if (o.score == Score::kSparseMixer) choice.margin = kMixerMargin;
  const std::string bias_name = block + "exp_probs_b.bias";
  const ValueId bias = o.choice_bias == Bias::kRequired
                           ? m.Vector(bias_name, {c.expert_count})
                           : m.OptionalVector(bias_name, {c.expert_count});
  ValueId scores = logits;
  if (o.score == Score::kSoftmax) scores = m.Softmax(logits);
  if (o.score == Score::kSigmoid) scores = m.Sigmoid(logits);
  Chosen chosen = m.TopK(scores, bias, choice);
  if (o.score == Score::kSoftmaxOfChosen) {
    chosen.weights = m.Softmax(chosen.weights);
  }
  if (o.score == Score::kSigmoidOfChosen) {
    chosen.weights = m.Sigmoid(chosen.weights);
  }
  if (o.weights_scale != 1) {
    chosen.weights = m.Scale(chosen.weights, o.weights_scale);
  }
  return chosen;
}

ExpertWeights WeightsOf(ModelBuilder& m, const std::string& name, int64_t rows,
                        int64_t columns, Bias bias) {
  const int64_t n = m.config.expert_count;
  ExpertWeights weights;
  weights.matrix = m.ExpertMatrix(name, n, rows, columns);
  weights.factors = m.ExpertFactors(name, weights.matrix, n, rows);
  weights.bias = bias == Bias::kRequired
                     ? m.Vector(name + ".bias", {rows, n})
                     : m.OptionalVector(name + ".bias", {rows, n});
  return weights;
}

// Half of the rows of each expert.
ExpertWeights HalfOf(ModelBuilder& m, const std::string& name,
                     const ExpertWeights& both, int64_t rows, int64_t begin) {
  const int64_t n = m.config.expert_count;
  m.Name(name);
  ExpertWeights half;
  half.matrix = m.SliceRows(both.matrix, n, begin, rows);
  if (both.factors != kNone) {
    half.factors = m.SliceRows(both.factors, n, begin, rows);
  }
  if (both.bias != kNone) half.bias = m.SliceRows(both.bias, n, begin, rows);
  return half;
}

ValueId Product(ModelBuilder& m, const std::string& name, ValueId x,
                const ExpertWeights& weights, ValueId ids) {
  const int64_t n = m.config.expert_count;
  m.Name(name);
  ValueId y = m.ExpertMatmul(x, weights.matrix, ids, n);
  if (weights.factors != kNone) y = m.ExpertMul(y, weights.factors, ids, n);
  return weights.bias == kNone ? y : m.ExpertAdd(y, weights.bias, ids, n);
}

}  // namespace

ExpertOptions ExpertsOf(const ModelConfig& config) {
  ExpertOptions options;
  switch (config.expert_gating) {
    case Gating::kUnset:
    case Gating::kSoftmax:
      break;
    case Gating::kSigmoid:
      options.score = Score::kSigmoid;
      break;
    case Gating::kSoftmaxOfChosen:
      options.score = Score::kSoftmaxOfChosen;
      break;
  }
  options.normalize = config.expert_weights_norm.value_or(false);
  options.weights_scale = AsWritten(config.expert_weights_scale);
  options.shared_width =
      config.shared_feed_forward_length > 0
          ? config.shared_feed_forward_length
          : config.expert_shared_count * config.expert_feed_forward_length;
  options.groups = config.expert_group_count;
  options.groups_used = config.expert_group_used_count;
  return options;
}

void HandleExperts(ModelTraits* traits, Gating gating,
                   std::optional<bool> normalize) {
  for (const char* key :
       {"expert_count", "expert_gating_func", "expert_group_count",
        "expert_weights_scale", "interleave_moe_layer_step",
        "leading_dense_block_count"}) {
    traits->handled_keys.push_back(key);
  }
  traits->default_gating = gating;
  traits->default_weights_norm = normalize;
}

ModelTraits ExpertTraits(Gating gating, std::optional<bool> normalize,
                         std::vector<absl::string_view> more) {
  ModelTraits traits;
  traits.handled_keys = std::move(more);
  HandleExperts(&traits, gating, normalize);
  return traits;
}

Chosen RouteToExperts(ModelBuilder& m, const std::string& block, ValueId x,
                      const ExpertOptions& options) {
  const ValueId logits =
      m.Linear(block + "ffn_gate_inp", x, m.config.expert_count,
               m.config.embedding_length, options.biases);
  m.Name(block + "ffn_router");
  return ChooseExperts(m, block, logits, options);
}

ValueId ExpertLinear(ModelBuilder& m, const std::string& name, ValueId x,
                     ValueId ids, int64_t rows, int64_t columns, Bias bias) {
  return Product(m, name, x, WeightsOf(m, name, rows, columns, bias), ids);
}

ValueId Experts(ModelBuilder& m, const std::string& block, ValueId x,
                const ExpertOptions& options) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const int64_t f = c.expert_feed_forward_length;
  const std::string gate_name = block + "ffn_gate_exps";
  const std::string up_name = block + "ffn_up_exps";
  const std::string down_name = block + "ffn_down_exps";

  Chosen chosen = RouteToExperts(
      m, block, options.router_input == kNone ? x : options.router_input,
      options);
  if (options.weights_on_input && c.expert_used_count != 1) {
    m.Fail(absl::UnimplementedError(absl::StrCat(
        "not supported: ", c.architecture, ".expert_used_count is ",
        c.expert_used_count,
        ", and weights are for what goes into an expert: use a model that "
        "chooses one")));
    return kNone;
  }
  ExpertWeights gate, up;
  const std::string both_name = block + "ffn_gate_up_exps";
  if (m.HasTensor(both_name + ".weight")) {
    const ExpertWeights both =
        WeightsOf(m, both_name, 2 * f, d, options.biases);
    gate = HalfOf(m, gate_name, both, f, 0);
    up = HalfOf(m, up_name, both, f, f);
  } else {
    gate = WeightsOf(m, gate_name, f, d, options.biases);
    up = WeightsOf(m, up_name, f, d, options.biases);
  }
  const ExpertWeights down = WeightsOf(m, down_name, d, f, options.biases);
  // Gemma 4's, which files of NVFP4 have in the factors of the matrix.
  const ValueId own =
      down.factors == kNone
          ? m.OptionalVector(down_name + ".scale", {c.expert_count})
          : kNone;
  m.Name(block + "ffn_router");
  if (own != kNone) {
    chosen.weights =
        m.ExpertMul(chosen.weights, own, chosen.ids, c.expert_count);
  }
  if (options.weights_on_input) x = m.WeightedSum(x, chosen.weights);
  const ValueId gate_y = Product(m, gate_name, x, gate, chosen.ids);
  const ValueId up_y = Product(m, up_name, x, up, chosen.ids);
  m.Name(block + "ffn_act_exps");
  const ValueId hidden = Gated(m, gate_y, up_y, options.activation);
  const ValueId y = Product(m, down_name, hidden, down, chosen.ids);
  m.Name(block + "ffn_experts");
  if (!options.weights_on_input) return m.WeightedSum(y, chosen.weights);
  return y;
}

ValueId SharedExperts(ModelBuilder& m, const std::string& block, ValueId x,
                      int64_t width, Activation activation, bool gated) {
  const int64_t d = m.config.embedding_length;
  const ValueId gate = m.Linear(block + "ffn_gate_shexp", x, width, d);
  const ValueId up = m.Linear(block + "ffn_up_shexp", x, width, d);
  m.Name(block + "ffn_act_shexp");
  const ValueId hidden = Gated(m, gate, up, activation);
  const ValueId down = m.Linear(block + "ffn_down_shexp", hidden, d, width);
  if (!gated) return down;
  const ValueId share = m.Linear(block + "ffn_gate_inp_shexp", x, 1, d);
  m.Name(block + "ffn_shexp");
  return m.WeightedSum(down, m.Sigmoid(share));
}

ValueId FeedForwardOrExperts(ModelBuilder& m, int64_t block, ValueId x,
                             const ExpertOptions& options) {
  const ModelConfig& c = m.config;
  if (!c.HasExperts(block)) {
    return GatedFeedForward(m, block, x, options.activation);
  }
  const std::string blk = BlockPrefix(block);
  const ValueId chosen = Experts(m, blk, x, options);
  if (options.shared_width == 0) return chosen;
  const ValueId shared =
      SharedExperts(m, blk, x, options.shared_width, options.activation);
  m.Name(blk + "ffn_all_experts");
  return m.Add(chosen, shared);
}

}  // namespace weft
