// The feed-forward network of a block as a mixture of experts, for the
// architectures that have one.
#pragma once

#include <string>

#include "loaders/architectures/architecture.h"

namespace weft {

// Of each row of x, the experts that the router finds likeliest
// (config.expert_used_count of them), weighted with their probabilities. With
// `normalize`, these are divided by their sum. Tensors: `block` + ffn_gate_inp,
// ffn_gate_exps, ffn_up_exps and ffn_down_exps. Requires
// config.expert_count > 0.
ValueId Experts(ModelBuilder& m, const std::string& block, ValueId x,
                bool normalize);

}  // namespace weft
