// The feed-forward network of a block as a mixture of experts: one router and
// one set of products for all families.
//
//   ExpertOptions options = ExpertsOf(m.config);       what the file says
//   options.activation = Activation::kGeluTanh;        what the family knows
//   x = FeedForwardOrExperts(m, block, x, options);
//
// with ExpertTraits, so that the keys of routers are read
// (ModelConfig::expert_gating and so on) rather than refused. A family
// that is put together otherwise (a norm between the parts, one input for the
// router and another for the experts) calls Experts and SharedExperts itself.
//
// Of a block's tensors there are read, where the file has them: the router's
// bias (ffn_gate_inp.bias), a bias for the choice only (exp_probs_b.bias),
// biases of experts (ffn_gate_exps.bias, ...), numbers that weights are times
// (ffn_down_exps.scale; in NVFP4 as of any matrix), what products with experts
// in NVFP4 are times (ffn_gate_exps.scale, ...), gate and up as one tensor
// (ffn_gate_up_exps, gate's rows first), and a tensor for each expert
// (ffn_up.3), as files of 2023 have them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "loaders/architectures/architecture.h"
#include "loaders/architectures/blocks.h"

namespace weft {

struct ExpertOptions {
  enum class Score {
    kSoftmax,          // over all experts
    kSigmoid,          // of each by itself
    kSoftmaxOfChosen,  // experts are chosen by the router's logits
    kSigmoidOfChosen,  // likewise
    kSparseMixer,      // likewise; see top_k's margin, which is 0.02
  };
  Score score = Score::kSoftmax;
  // Whether the weights of the chosen are divided by their sum, or by
  // least_sum where that is more: sigmoids may all be 0 (DeepSeek-V3's number).
  bool normalize = false;
  double least_sum = 1e-20;
  double weights_scale = 1;  // and then times this
  // Of so many groups of experts, those `groups_used` are chosen from whose
  // group_best best experts have the largest sums of scores.
  int64_t groups = 1;
  int64_t groups_used = 1;
  int64_t group_best = 2;
  Activation activation = Activation::kSilu;
  // Weights are for what goes into an expert, not for what comes out of it.
  // Requires config.expert_used_count == 1.
  bool weights_on_input = false;
  // Rows of gate and up of the network beside the experts; 0: none.
  int64_t shared_width = 0;
  // What the router sees; kNone: what the experts see.
  ValueId router_input = kNone;
  // Of the choice (exp_probs_b), and of router and experts.
  Bias choice_bias = Bias::kOptional;
  Bias biases = Bias::kOptional;
};

// What the file's keys say, and the traits where they say nothing. The width of
// shared experts is that of all together.
ExpertOptions ExpertsOf(const ModelConfig& config);

// Makes a family obey the keys behind that, and behind ModelConfig::HasExperts.
// Where files leave out how scores become weights, and whether these are made
// to sum to 1, it is as given; unset: the builder knows.
void HandleExperts(ModelTraits* traits, Gating gating,
                   std::optional<bool> normalize);
// Of a family that obeys them, and these.
ModelTraits ExpertTraits(Gating gating, std::optional<bool> normalize,
                         std::vector<absl::string_view> more = {});

// Which experts each row of x goes to, for families whose experts are
// otherwise: ffn_gate_inp and exp_probs_b.
Chosen RouteToExperts(ModelBuilder& m, const std::string& block, ValueId x,
                      const ExpertOptions& options);

// The products of rows with their experts' matrices of `rows` and `columns`,
// with factors and biases as above.
ValueId ExpertLinear(ModelBuilder& m, const std::string& name, ValueId x,
                     ValueId ids, int64_t rows, int64_t columns, Bias bias);

// Of each row of x, config.expert_used_count experts. Tensors: `block` +
// ffn_gate_inp, ffn_gate_exps, ffn_up_exps, ffn_down_exps and those above.
// Requires config.expert_count > 0.
ValueId Experts(ModelBuilder& m, const std::string& block, ValueId x,
                const ExpertOptions& options);

// The network that every token goes through beside its experts: ffn_gate_shexp,
// ffn_up_shexp, ffn_down_shexp of `width` rows. With `gated`, times the sigmoid
// of ffn_gate_inp_shexp x, a number for each row.
ValueId SharedExperts(ModelBuilder& m, const std::string& block, ValueId x,
                      int64_t width, Activation activation, bool gated = false);
// GatedFeedForward in blocks that have no experts (ModelConfig::HasExperts),
// else Experts, and SharedExperts of options.shared_width, added.
ValueId FeedForwardOrExperts(ModelBuilder& m, int64_t block, ValueId x,
                             const ExpertOptions& options);

}  // namespace weft
