// The standard inputs of a language model's graph, by which loaders, the
// executor, the verifier of plans and the checkers understand each other: an
// architecture writes the graph with them, VerifyModelPlan takes no others, and
// who runs a step fills them in.
//
// All but the scales of adapters are i32, one number for each token of the step
// (T) or for each row whose logits are wanted (R). Tokens of several sequences
// may stand in one step, in any mixture, those of one sequence in ascending
// position.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace weft {

enum class StandardInput : uint8_t {
  kIds,            // "ids" [T]: the token
  kPositions,      // "positions" [T]: its place in its sequence, from 0
  kSequence,       // "sequence" [T]: the slot of the KV cache of its sequence
  kOutputRows,     // "output_rows" [R]: tokens of the step, counted from 0
  kLastPositions,  // "last_positions" [T], encoders only: the last position of
                   // the token's sequence in this step
  kAdapterScales,  // "adapter_scales" f32[T, adapters], graphs with adapters
                   // only (ops/lora.h): how much of each the token has. Finite;
                   // 0: nothing, to the bit
};
constexpr int kStandardInputs = 6;

// What the numbers of an input are below, and so what they may index.
enum class InputBound : uint8_t {
  kVocabulary,  // rows of tables with that many rows or more
  kContext,     // positions of states; rows of tables as long as the context
  kSlots,       // slots of the KV cache
  kTokens,      // rows of matrices [T,...]
  kNone,        // they are no indices
};

struct StandardInputInfo {
  StandardInput input;
  const char* name;
  Dim::Symbol rows;
  InputBound below;
};

const StandardInputInfo& Info(StandardInput input);
// Null when no standard input has this name.
const StandardInputInfo* FindStandardInput(absl::string_view name);

// i32[T] or i32[R]; of kAdapterScales f32[T, adapters].
ValueType TypeOf(StandardInput input, int64_t adapters = 0);
ValueId AddInput(Graph* graph, StandardInput input, int64_t adapters = 0);

}  // namespace weft
