// Parts that encoders have in common: what goes into the first block, blocks
// with their norms behind the sums (BERT's), and what comes out.
//
// What comes out is a vector per token, of which a text's own is made by
// pooling (ops/pooling.h); or, where the file has a head behind the pooling and
// the graph is to give its result, a row per text: the pooling is then part of
// the graph. Texts stand whole in a step, so a mean is that of a sequence's
// rows.
#pragma once

#include <functional>
#include <string>

#include "loaders/architectures/blocks.h"

namespace weft {

// LayerNorm, no rotation, in both directions.
ModelTraits EncoderTraits();

// LayerNorm by token_embd_norm of the tokens and the first token type, where
// there is a table of types (one text, no pair), and with a table of positions
// if `positions`.
ValueId EncoderInput(ModelBuilder& m, bool positions);

// The block's result: y = LN(attended + x; attn_output_norm), and
// LN(feed_forward(y) + y; layer_output_norm).
ValueId PostNormBlock(ModelBuilder& m, int64_t block, ValueId x,
                      ValueId attended,
                      const std::function<ValueId(ValueId)>& feed_forward);

// A network of a block.
using FeedForward = ValueId (*)(ModelBuilder& m, int64_t block, ValueId x);
// The whole of BERT with rotation by halves in place of learned positions:
// input, PostNormBlocks, vectors.
void BuildRotatedBert(ModelBuilder& m, FeedForward feed_forward);

// ffn_down gelu(ffn_up x), biases where the file has them. GELU is the
// approximation by tanh, as in other engines that read these files; the
// published models were trained with the exact one, which differs in the fourth
// digit.
ValueId GeluFeedForward(ModelBuilder& m, int64_t block, ValueId x);

// Of a text's pooled vector f32[R, embedding_length].
using TextHead = ValueId (*)(ModelBuilder& m, ValueId pooled);
// tanh(cls x), where there is cls; then cls.output, where there is that: the
// scores of BERT's kin.
ValueId ClassifierHead(ModelBuilder& m, ValueId pooled);

// The graph's output, of the tokens' vectors after the last norm. `head` makes
// what it gives of a whole text.
void GiveVectors(ModelBuilder& m, ValueId x, TextHead head = ClassifierHead);

}  // namespace weft
