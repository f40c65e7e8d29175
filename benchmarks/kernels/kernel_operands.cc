#include "benchmarks/kernels/kernel_operands.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "ops/quantize.h"
#include "ops/reference.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// Behind every value: nobody may write there.
constexpr int64_t kGuardBytes = 64;

// Sixteen rows, again and again: encoding a whole weight takes long.
absl::Status FillWeight(const ValueType& type, std::mt19937& random,
                        const FillFunction& fill, uint8_t* data) {
  constexpr int64_t kRows = 16;
  const int64_t rows = type.shape[0].value;
  const int64_t columns = type.shape[1].value;
  const int64_t row_bytes = RowBytes(type.dtype, columns);
  std::vector<float> floats(columns);
  std::vector<uint8_t> encoded(kRows * row_bytes);
  for (int64_t row = 0; row < kRows; ++row) {
    fill(random, columns, floats.data());
    WEFT_RETURN_IF_ERROR(QuantizeRow(type.dtype, floats.data(),
                                     &encoded[row * row_bytes], columns));
  }
  FindWeightLayout(type.layout)
      ->pack(
          type.dtype, rows, columns,
          [&](int64_t row) { return &encoded[row % kRows * row_bytes]; }, data);
  return absl::OkStatus();
}

void FillState(const ValueType& type, int64_t context, std::mt19937& random,
               const FillFunction& fill, const KvState& state) {
  std::vector<float> floats(type.shape[2].value);
  for (int64_t position = 0; position < context; ++position) {
    for (int64_t head = 0; head < type.shape[1].value; ++head) {
      fill(random, type.shape[2].value, floats.data());
      WriteKv(type, state, 0, position, head, {floats.begin(), floats.end()});
    }
  }
}

}  // namespace

void FillUniform(std::mt19937& random, int64_t count, float* out) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i) out[i] = uniform(random);
}

absl::StatusOr<std::unique_ptr<KernelOperands>> KernelOperands::Create(
    const KernelCase& kernel_case, int64_t rows, const FillOfValue& fill) {
  Bounds step = kernel_case.graph.bounds;
  step.tokens = step.rows = rows;
  std::unique_ptr<KernelOperands> operands(
      new KernelOperands(kernel_case.graph, step));
  WEFT_RETURN_IF_ERROR(operands->Make(fill));
  return operands;
}

absl::Status KernelOperands::FillValue(const Value& value,
                                       const Operand& operand,
                                       const FillFunction& fill) const {
  std::mt19937 random(1);
  uint8_t* data = static_cast<uint8_t*>(operand.data);
  const int64_t bytes = StorageBytes(value.type, step_);
  if (IsSlotState(value.type)) {
    fill(random, bytes / 4, reinterpret_cast<float*>(data));
  } else if (value.kind == ValueKind::kState) {
    FillState(value.type, step_.context, random, fill, *operand.state);
  } else if (value.type.dtype == DType::kI32) {
    int32_t* numbers = reinterpret_cast<int32_t*>(data);
    const int64_t count = bytes / 4;
    for (int64_t i = 0; i < count; ++i) {
      // Positions end at the context's end; of rows and tokens two and two
      // change places.
      const int64_t other = (i ^ 1) < count ? i ^ 1 : i;
      numbers[i] = static_cast<int32_t>(
          value.name == "positions"
              ? graph_.bounds.context - graph_.bounds.tokens + i
          : value.name == "last_positions" ? graph_.bounds.context - 1
          : value.name == "sequence"       ? 0
                                           : other);
    }
  } else if (value.type.shape.rank() == 2 && value.kind == ValueKind::kWeight) {
    WEFT_RETURN_IF_ERROR(FillWeight(value.type, random, fill, data));
  } else {
    fill(random, bytes / 4, reinterpret_cast<float*>(data));
  }
  return absl::OkStatus();
}

bool KernelOperands::IsResult(ValueId id) const {
  const std::vector<ValueId>& results = node().outputs;
  if (std::find(results.begin(), results.end(), id) != results.end()) {
    return true;
  }
  return OpOf(node()).writes_state && node().inputs[0] == id;
}

absl::Status KernelOperands::MakeValue(ValueId id, const FillOfValue& fill) {
  const Value& value = graph_.value(id);
  WEFT_ASSIGN_OR_RETURN(
      memory_[id],
      Arena::Create(StorageBytes(value.type, step_) + kGuardBytes, "operands"));
  values_[id] = MatrixOperand(value.type, step_, memory_[id].data());
  if (IsStateType(value.type)) {
    states_[id] = StateOf(value.type, memory_[id].data(), page_table_);
    values_[id].state = &states_[id];
  }
  if (value.kind == ValueKind::kTemporary) return absl::OkStatus();
  return FillValue(value, values_[id], fill(value));
}

absl::Status KernelOperands::Make(const FillOfValue& fill) {
  for (int64_t p = 0; p < (step_.context + kPageTokens - 1) / kPageTokens;
       ++p) {
    page_table_.push_back(static_cast<int32_t>(p));
  }
  values_.resize(graph_.value_count());
  states_.resize(graph_.value_count());
  memory_.resize(graph_.value_count());
  for (ValueId id = 0; id < graph_.value_count(); ++id) {
    WEFT_RETURN_IF_ERROR(MakeValue(id, fill));
  }

  // What the node reads from other nodes.
  for (NodeId id : graph_.order()) {
    const Node& before = graph_.node(id);
    if (&before == &node()) break;
    if (OpOf(before).view) {
      const auto slice = before.attributes.As<SliceAttributes>();
      Operand window = values_[before.inputs[0]];
      window.data = static_cast<uint8_t*>(window.data) +
                    slice.begin * int64_t{sizeof(float)};
      window.columns = slice.size;
      values_[before.outputs[0]] = window;
      continue;
    }
    std::vector<Operand> inputs, outputs;
    for (ValueId input : before.inputs) inputs.push_back(values_[input]);
    for (ValueId output : before.outputs) outputs.push_back(values_[output]);
    OpOf(before).reference(
        {graph_, before, inputs.data(), outputs.data(), step_});
  }

  if (OpOf(node()).writes_state) {
    values_[node().outputs[0]] = values_[node().inputs[0]];
  }
  for (ValueId input : node().inputs) inputs_.push_back(values_[input]);
  for (ValueId output : node().outputs) outputs_.push_back(values_[output]);
  for (const Arena& arena : memory_) {
    as_made_.emplace_back(arena.data(), arena.data() + arena.bytes());
  }
  return absl::OkStatus();
}

void KernelOperands::Restore() {
  for (ValueId id = 0; id < graph_.value_count(); ++id) {
    if (!IsResult(id)) continue;
    const Arena& arena = memory_[id];
    std::memcpy(arena.data(), as_made_[id].data(), arena.bytes());
    if (!IsStateType(graph_.value(id).type)) {
      std::memset(arena.data(), 0xff, arena.bytes() - kGuardBytes);
    }
  }
}

bool KernelOperands::OthersIntact() const {
  for (ValueId id = 0; id < graph_.value_count(); ++id) {
    const Arena& arena = memory_[id];
    const int64_t from = IsResult(id) ? arena.bytes() - kGuardBytes : 0;
    if (std::memcmp(arena.data() + from, as_made_[id].data() + from,
                    arena.bytes() - from) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace weft
