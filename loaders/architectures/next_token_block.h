// The block behind a model's last one that predicts the token after next
// (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2: "multi-token prediction";
// files call it nextn). Of the token and of what the model made of the one
// before, both normed, one product makes a row; a block of the family's own
// kind goes on from there, and the model's head, or the block's own, makes
// logits.
//
//   x = eh_proj [rms(embed(token)); rms(previous_hidden)]
//   logits = head rms(block(x))
//
// Row t of text has its token t and the hidden row of token t - 1; what it says
// is of token t + 1. Only differences of positions matter, so the model's own
// serve. The first token has no row before: who runs it decides what stands
// there.
#pragma once

#include <functional>

#include "loaders/architectures/architecture.h"

namespace weft {

// What the block gives in place of the model's hidden row, so that it can go on
// by itself: what comes out of it, or that after its last norm.
enum class HandsOn { kRows, kNormedRows };

// The graph of next_token_block.h in graph/. `block` is the family's: attention
// and a feed-forward network, with their norms and residuals.
void NextTokenBlock(
    ModelBuilder& m, HandsOn hands_on,
    const std::function<ValueId(int64_t block, ValueId x)>& block);

}  // namespace weft
