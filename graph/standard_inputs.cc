#include "graph/standard_inputs.h"

namespace weft {
namespace {

// In the order of the enum.
constexpr StandardInputInfo kInputs[kStandardInputs] = {
    {StandardInput::kIds, "ids", Dim::kTokens, InputBound::kVocabulary},
    {StandardInput::kPositions, "positions", Dim::kTokens,
     InputBound::kContext},
    {StandardInput::kSequence, "sequence", Dim::kTokens, InputBound::kSlots},
    {StandardInput::kOutputRows, "output_rows", Dim::kRows,
     InputBound::kTokens},
    {StandardInput::kLastPositions, "last_positions", Dim::kTokens,
     InputBound::kContext},
    {StandardInput::kAdapterScales, "adapter_scales", Dim::kTokens,
     InputBound::kNone},
};

}  // namespace

const StandardInputInfo& Info(StandardInput input) {
  return kInputs[static_cast<int>(input)];
}

const StandardInputInfo* FindStandardInput(absl::string_view name) {
  for (const StandardInputInfo& info : kInputs) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

ValueType TypeOf(StandardInput input, int64_t adapters) {
  if (input == StandardInput::kAdapterScales) {
    return {DType::kF32, Shape{Dim::Tokens(), Dim::Number(adapters)}, ""};
  }
  return {DType::kI32, Shape{Dim{Info(input).rows, 0}}, ""};
}

ValueId AddInput(Graph* graph, StandardInput input, int64_t adapters) {
  return graph->AddInput(Info(input).name, TypeOf(input, adapters));
}

}  // namespace weft
