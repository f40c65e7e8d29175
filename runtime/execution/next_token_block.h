// Runs a model's next-token block on rows of the model's steps, in the pages of
// the model's sequences.
//
//   NextTokenRows rows;
//   ...   // as in a Batch, and what the model made of the tokens before
//   absl::Status s = block.Run(rows);
//
// Not thread-safe, and not while the model runs. Allocates nothing after
// construction.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/execution/executor.h"

namespace weft {

// All but `output_rows` have an entry per token. Nothing is checked: tokens,
// positions and slots must be such as the model's executor takes, with pages
// for the positions, at most as many as a step takes.
struct NextTokenRows {
  absl::Span<const int32_t> ids, positions, slots;
  const float* previous_hidden;  // [tokens][embedding]
  // Rows that logits and hidden rows are wanted of; none: only keys and values
  // are written.
  absl::Span<const int32_t> output_rows;
  float* logits = nullptr;  // [output_rows][vocabulary]
  float* hidden = nullptr;  // [output_rows][embedding]
};

class NextTokenBlock {
 public:
  // An executor of a NextTokenPlan, which must outlive it.
  explicit NextTokenBlock(Executor* executor);

  // Errors: a weight's checksum (Executor::Run).
  absl::Status Run(const NextTokenRows& rows);

 private:
  Executor* executor_;
  // Of the standard inputs and then the hidden rows, by input of the graph.
  std::vector<int> inputs_;
  std::vector<const void*> given_;  // reused by every step
  int logits_ = 0;                  // among the outputs
};

}  // namespace weft
