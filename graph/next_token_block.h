// The names by which the graphs of a model and of its next-token block
// (loaders/architectures/next_token_block.h) understand each other.
//
// The model's graph gives, beside its logits, the rows that logits are made of,
// for every token of the step: "hidden_rows" f32[T, embedding]. The block's
// graph has the standard inputs and "previous_hidden" f32[T, embedding], what
// the token before had there; it gives "logits" f32[R, vocabulary] of the token
// behind the row's, and "hidden" f32[R, embedding], which may stand for the
// model's in the row of that token. All its states are by position.
#pragma once

namespace weft {

inline constexpr char kHiddenRows[] = "hidden_rows";
inline constexpr char kPreviousHidden[] = "previous_hidden";
inline constexpr char kBlockLogits[] = "logits";
inline constexpr char kBlockHidden[] = "hidden";

}  // namespace weft
