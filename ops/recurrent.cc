// What recurrent layers are made of: a short causal convolution, the delta rule
// and the selective scan. Each has a state by sequence (slot_layout.h), takes
// the rows of a sequence in their order, and computes the same numbers however
// they are cut into steps.
//
// Convolution and scan: Gu and Dao 2023 (arXiv:2312.00752), Dao and Gu 2024
// (arXiv:2405.21060). Delta rule: Yang et al. 2024 (arXiv:2412.06464); with a
// decay of its own for each key, Kimi Linear 2025 (arXiv:2510.26692).
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/kernels/slot_layout.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;
using Row = std::vector<double>;

// Keys of a head lie on a kernel's stack.
constexpr int64_t kMostKeys = 512;

absl::Status WantColumns(const Graph& graph, const Node& node, int i,
                         int64_t columns) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, i));
  const Shape& shape = OperandType(graph, node, i).shape;
  if (shape.rank() == 2 && shape[0] == Dim::Tokens() &&
      shape[1] == Dim::Number(columns)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(node.op->name, " operand ", i, ": want f32[T,", columns,
                   "], found ", OperandType(graph, node, i).ToString()));
}

// Heads of keys that the columns of operand `i` are; `heads` share them evenly.
absl::StatusOr<int64_t> KeyHeads(const Graph& graph, const Node& node, int i,
                                 int64_t heads, int64_t keys) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, i));
  const Shape& shape = OperandType(graph, node, i).shape;
  const int64_t columns = shape[shape.rank() - 1].value;
  const int64_t count = columns / keys;
  if (columns % keys != 0 || count == 0 || heads % count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, " operand ", i, ": ", heads, " heads do not share ",
        columns, " columns of ", keys, " keys evenly"));
  }
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, i, columns));
  return count;
}

absl::Status CheckMatrices(const Node& node, const Shape& state) {
  if (state[1].value <= kMostKeys) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      node.op->name, ": ", state[1].value, " keys, at most ", kMostKeys));
}

absl::StatusOr<Types> InferShortConv(const Graph& graph, const Node& node) {
  const ValueType& state = OperandType(graph, node, 0);
  const Dim columns = state.shape[1];
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 1, columns.value));
  const Shape want = {Dim::Number(state.shape[0].value + 1), columns};
  const ValueType& taps = OperandType(graph, node, 2);
  if (!(taps == FloatType(want))) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, " operand 2: want f32", want.ToString(),
                     ", found ", taps.ToString()));
  }
  if (node.inputs.size() > 5) {
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, 5, columns));
  }
  return Types{state, FloatType(OperandType(graph, node, 1).shape)};
}

absl::StatusOr<Types> InferDeltaRule(const Graph& graph, const Node& node) {
  const ValueType& state = OperandType(graph, node, 0);
  WEFT_RETURN_IF_ERROR(CheckMatrices(node, state.shape));
  const int64_t heads = state.shape[0].value;
  const int64_t keys = state.shape[1].value;
  WEFT_ASSIGN_OR_RETURN(const int64_t key_heads,
                        KeyHeads(graph, node, 1, heads, keys));
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 2, key_heads * keys));
  WEFT_RETURN_IF_ERROR(
      WantColumns(graph, node, 3, heads * state.shape[2].value));
  // One decay for a head, or one for each of its keys.
  if (!WantColumns(graph, node, 4, heads * keys).ok()) {
    WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 4, heads));
  }
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 5, heads));
  return Types{state, FloatType(OperandType(graph, node, 3).shape)};
}

absl::StatusOr<Types> InferSelectiveScan(const Graph& graph, const Node& node) {
  const ValueType& state = OperandType(graph, node, 0);
  WEFT_RETURN_IF_ERROR(CheckMatrices(node, state.shape));
  const Dim heads = state.shape[0], keys = state.shape[1];
  const Dim values = state.shape[2];
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 1, heads.value * values.value));
  WEFT_ASSIGN_OR_RETURN(const int64_t groups,
                        KeyHeads(graph, node, 2, heads.value, keys.value));
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 3, groups * keys.value));
  // Each head has one step, decay and skip, or each value of the only one.
  const ValueType& a = OperandType(graph, node, 5);
  const bool by_value = heads.value == 1 && a == FloatType(Shape{keys, values});
  const Dim parts = by_value ? values : heads;
  WEFT_RETURN_IF_ERROR(WantColumns(graph, node, 4, parts.value));
  if (!by_value) WEFT_RETURN_IF_ERROR(WantVector(graph, node, 5, heads));
  WEFT_RETURN_IF_ERROR(WantVector(graph, node, 6, parts));
  return Types{state, FloatType(OperandType(graph, node, 1).shape)};
}

// The slot of a row's sequence; of its first row, as zeros. `positions` and
// `sequence` are operands i and i + 1.
float* SlotOfRow(const ReferenceCall& call, int i, int64_t row) {
  const KvState& state = *call.inputs[0].state;
  float* slot = SlotOf(state, Integers(call, i + 1)[row]);
  if (Integers(call, i)[row] == 0) {
    std::memset(slot, 0, StorageBytes(call.input_type(0), call.step));
  }
  return slot;
}

void RunShortConv(const ReferenceCall& call) {
  const Shape& shape = call.input_type(0).shape;
  const int64_t rows = shape[0].value, columns = shape[1].value;
  const bool silu = call.attributes<ShortConvAttributes>().activation ==
                    ConvActivation::kSilu;
  Row bias(columns);
  if (call.node.inputs.size() > 5) bias = ReadRow(call, 5, 0);
  std::vector<Row> taps;
  for (int64_t i = 0; i <= rows; ++i) taps.push_back(ReadRow(call, 2, i));
  for (int64_t t = 0; t < call.outputs[1].rows; ++t) {
    float* window = SlotOfRow(call, 3, t);
    const Row x = ReadRow(call, 1, t);
    Row y(columns);
    for (int64_t c = 0; c < columns; ++c) {
      double sum = bias[c];
      for (int64_t i = 0; i < rows; ++i) {
        sum += taps[i][c] * window[i * columns + c];
      }
      sum += taps[rows][c] * x[c];
      y[c] = silu ? Silu(RoundToFloat(sum)) : sum;
    }
    WriteRow(call, 1, t, y);
    std::memmove(window, window + columns,
                 (rows - 1) * columns * sizeof(float));
    for (int64_t c = 0; c < columns; ++c) {
      window[(rows - 1) * columns + c] = static_cast<float>(x[c]);
    }
  }
}

int64_t KeyHeadOf(HeadOrder order, int64_t head, int64_t heads,
                  int64_t key_heads) {
  return order == HeadOrder::kTiled ? head % key_heads
                                    : head / (heads / key_heads);
}

void RunDeltaRule(const ReferenceCall& call) {
  const Shape& shape = call.input_type(0).shape;
  const int64_t heads = shape[0].value, keys = shape[1].value;
  const int64_t values = shape[2].value;
  const auto a = call.attributes<DeltaRuleAttributes>();
  const int64_t key_heads = call.inputs[1].columns / keys;
  const bool by_key = call.inputs[4].columns == heads * keys && keys > 1;
  for (int64_t t = 0; t < call.outputs[1].rows; ++t) {
    float* slot = SlotOfRow(call, 6, t);
    const Row q = ReadRow(call, 1, t), k = ReadRow(call, 2, t);
    const Row v = ReadRow(call, 3, t), decay = ReadRow(call, 4, t);
    const Row beta = ReadRow(call, 5, t);
    Row y(heads * values);
    for (int64_t head = 0; head < heads; ++head) {
      float* matrix = slot + head * MatrixFloats(keys, values);
      const int64_t from =
          KeyHeadOf(a.key_heads, head, heads, key_heads) * keys;
      const auto kept = [&](int64_t i) {
        return std::exp(decay[by_key ? head * keys + i : head]);
      };
      for (int64_t j = 0; j < values; ++j) {
        double predicted = 0;
        for (int64_t i = 0; i < keys; ++i) {
          predicted +=
              kept(i) * matrix[MatrixElement(keys, i, j)] * k[from + i];
        }
        const double change = beta[head] * (v[head * values + j] - predicted);
        double sum = 0;
        for (int64_t i = 0; i < keys; ++i) {
          float& s = matrix[MatrixElement(keys, i, j)];
          s = static_cast<float>(kept(i) * s + change * k[from + i]);
          sum += s * q[from + i];
        }
        y[head * values + j] = sum * a.scale;
      }
    }
    WriteRow(call, 1, t, y);
  }
}

void RunSelectiveScan(const ReferenceCall& call) {
  const Shape& shape = call.input_type(0).shape;
  const int64_t heads = shape[0].value, keys = shape[1].value;
  const int64_t values = shape[2].value;
  const int64_t group = heads / (call.inputs[2].columns / keys);
  const bool by_value = call.input_type(5).shape.rank() == 2;
  std::vector<Row> a;
  for (int64_t i = 0; i < (by_value ? keys : 1); ++i) {
    a.push_back(ReadRow(call, 5, i));
  }
  const Row d = ReadRow(call, 6, 0);
  for (int64_t t = 0; t < call.outputs[1].rows; ++t) {
    float* slot = SlotOfRow(call, 7, t);
    const Row x = ReadRow(call, 1, t), b = ReadRow(call, 2, t);
    const Row c = ReadRow(call, 3, t), dt = ReadRow(call, 4, t);
    Row y(heads * values);
    for (int64_t head = 0; head < heads; ++head) {
      float* matrix = slot + head * MatrixFloats(keys, values);
      const int64_t from = head / group * keys;
      for (int64_t j = 0; j < values; ++j) {
        const int64_t at = by_value ? j : head;
        const double in = x[head * values + j];
        double sum = 0;
        for (int64_t i = 0; i < keys; ++i) {
          const double kept = std::exp(dt[at] * a[by_value ? i : 0][at]);
          float& s = matrix[MatrixElement(keys, i, j)];
          s = static_cast<float>(kept * s + dt[at] * in * b[from + i]);
          sum += s * c[from + i];
        }
        y[head * values + j] = sum + d[at] * in;
      }
    }
    WriteRow(call, 1, t, y);
  }
}

int64_t ShortConvOperations(const Graph& graph, const Node& node,
                            const Bounds& bounds) {
  return CappedProduct(2 * OperandType(graph, node, 1).shape.Elements(bounds),
                       OperandType(graph, node, 2).shape[0].value);
}

// Of each element of the matrices: it decays, takes part in a prediction, is
// changed, and read.
int64_t DeltaRuleOperations(const Graph& graph, const Node& node,
                            const Bounds& bounds) {
  return CappedProduct(7 * OperandType(graph, node, 0).shape.Elements(bounds),
                       bounds.tokens);
}

int64_t SelectiveScanOperations(const Graph& graph, const Node& node,
                                const Bounds& bounds) {
  return CappedProduct(5 * OperandType(graph, node, 0).shape.Elements(bounds),
                       bounds.tokens);
}

constexpr OperandSchema kShortConvOperands[] = {
    StateOperand("window", "window"),
    RowsOperand("x"),
    WeightOperand("taps"),
    IndexOperand("positions", IndexKind::kPosition, 1),
    IndexOperand("sequence", IndexKind::kSequence, 1),
    Optional(WeightOperand("bias"))};
constexpr OperandSchema kDeltaRuleOperands[] = {
    StateOperand("matrices", "matrices"),
    RowsOperand("q"),
    RowsOperand("k"),
    RowsOperand("v"),
    RowsOperand("decay"),
    RowsOperand("beta"),
    IndexOperand("positions", IndexKind::kPosition, 1),
    IndexOperand("sequence", IndexKind::kSequence, 1)};
constexpr OperandSchema kSelectiveScanOperands[] = {
    StateOperand("matrices", "matrices"),
    RowsOperand("x"),
    RowsOperand("b"),
    RowsOperand("c"),
    RowsOperand("dt"),
    WeightOperand("a"),
    WeightOperand("d"),
    IndexOperand("positions", IndexKind::kPosition, 1),
    IndexOperand("sequence", IndexKind::kSequence, 1)};

constexpr const char* kConvActivations[] = {"none", "silu"};
constexpr AttributeSchema kShortConvAttributes[] = {
    Field<&ShortConvAttributes::activation>("activation", "of the results")
        .Optional()
        .OneOf(kConvActivations)};
constexpr const char* kHeadOrders[] = {"grouped", "tiled"};
constexpr AttributeSchema kDeltaRuleAttributes[] = {
    Field<&DeltaRuleAttributes::scale>("scale", "of queries").Above(0),
    Field<&DeltaRuleAttributes::key_heads>(
        "key_heads",
        "which of n heads of keys head h of H has: h / (H / n), or h modulo n")
        .OneOf(kHeadOrders)};

constexpr OpDef ShortConv() {
  OpDef op;
  op.name = "short_conv";
  op.meaning =
      "window, and f32[T,C] = the sum of taps f32[W+1,C] times the last W rows "
      "and this one of x f32[T,C], + bias";
  op.operands = kShortConvOperands;
  op.attributes = kShortConvAttributes;
  op.primitive = true;
  op.writes_state = true;
  op.infer = InferShortConv;
  op.reference = RunShortConv;
  op.operations = ShortConvOperations;
  return op;
}

constexpr OpDef DeltaRule() {
  OpDef op;
  op.name = "delta_rule";
  op.meaning =
      "matrices, and f32[T,H*V] = q S, where S decays by e^decay (f32[T,H], or "
      "f32[T,H*K] by key) and k^T beta (v - k S) is added to it";
  op.operands = kDeltaRuleOperands;
  op.attributes = kDeltaRuleAttributes;
  op.primitive = true;
  op.writes_state = true;
  op.infer = InferDeltaRule;
  op.reference = RunDeltaRule;
  op.operations = DeltaRuleOperations;
  return op;
}

constexpr OpDef SelectiveScan() {
  OpDef op;
  op.name = "selective_scan";
  op.meaning =
      "matrices, and f32[T,H*V] = c S + d x, where S decays by e^(dt a) and "
      "b^T dt x is added to it; dt, a, d of each head, or a f32[K,V] and dt, d "
      "of each value";
  op.operands = kSelectiveScanOperands;
  op.primitive = true;
  op.writes_state = true;
  op.infer = InferSelectiveScan;
  op.reference = RunSelectiveScan;
  op.operations = SelectiveScanOperations;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> ShortConvAttributes::Schema() {
  return kShortConvAttributes;
}
absl::Span<const AttributeSchema> DeltaRuleAttributes::Schema() {
  return kDeltaRuleAttributes;
}

constexpr OpDef kShortConvOp = ShortConv();
constexpr OpDef kDeltaRuleOp = DeltaRule();
constexpr OpDef kSelectiveScanOp = SelectiveScan();

}  // namespace weft
