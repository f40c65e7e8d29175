#include "runtime/execution/next_token_block.h"

#include "graph/next_token_block.h"
#include "graph/standard_inputs.h"

namespace weft {

NextTokenBlock::NextTokenBlock(Executor* executor) : executor_(executor) {
  for (const Port& input : executor->inputs()) {
    const StandardInputInfo* standard = FindStandardInput(input.name);
    inputs_.push_back(standard != nullptr ? static_cast<int>(standard->input)
                                          : kStandardInputs);
  }
  given_.resize(inputs_.size());
  logits_ = executor->outputs()[0].name == kBlockLogits ? 0 : 1;
}

absl::Status NextTokenBlock::Run(const NextTokenRows& rows) {
  const void* numbers[kStandardInputs + 1] = {};
  const auto set = [&](StandardInput input, absl::Span<const int32_t> data) {
    numbers[static_cast<int>(input)] = data.data();
  };
  set(StandardInput::kIds, rows.ids);
  set(StandardInput::kPositions, rows.positions);
  set(StandardInput::kSequence, rows.slots);
  set(StandardInput::kOutputRows, rows.output_rows);
  numbers[kStandardInputs] = rows.previous_hidden;
  for (size_t i = 0; i < inputs_.size(); ++i) given_[i] = numbers[inputs_[i]];
  void* results[2];
  results[logits_] = rows.logits;
  results[1 - logits_] = rows.hidden;
  return executor_->Run(Step{static_cast<int64_t>(rows.ids.size()),
                             static_cast<int64_t>(rows.output_rows.size()),
                             given_, absl::MakeConstSpan(results)});
}

}  // namespace weft
