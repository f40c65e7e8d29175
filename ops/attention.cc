// attention_scores, softmax, attention_values, and attention, which is the
// three in one (Vaswani et al. 2017; grouped queries: Ainslie et al. 2023).
// A row stands at its own position and sees those up to `positions`: the same
// where own_positions are left out. Where they are given, it may look ahead,
// and a window reaches as far to either side. Values may be what keys begin
// with (multi-head latent attention: DeepSeek-AI 2024, arXiv:2405.04434): the
// state of keys stands where that of values does.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"

namespace weft {
namespace {

using Types = std::vector<ValueType>;

// Query heads at operand `q`, keys or values at `state`; heads divide evenly.
absl::Status CheckHeads(const Graph& graph, const Node& node, int state) {
  const ValueType& kv = OperandType(graph, node, state);
  const int64_t kv_heads = kv.shape[1].value;
  const int64_t heads = node.attributes.As<AttentionAttributes>().heads;
  if (heads % kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op->name, ": ", heads, " heads do not share ",
                     kv_heads, " KV heads evenly"));
  }
  return absl::OkStatus();
}

absl::Status CheckQuery(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  WEFT_RETURN_IF_ERROR(CheckHeads(graph, node, 1));
  const Shape& q = OperandType(graph, node, 0).shape;
  const int64_t want = node.attributes.As<AttentionAttributes>().heads *
                       OperandType(graph, node, 1).shape[2].value;
  if (q.rank() != 2 || q[1] != Dim::Number(want)) {
    return absl::InvalidArgumentError(absl::StrCat(node.op->name, ": query is ",
                                                   q.ToString(), ", want ",
                                                   want, " columns"));
  }
  return absl::OkStatus();
}

// What a value of a state is: all of it, or where the state is one of keys,
// perhaps what it begins with.
absl::Status CheckValueDim(const Node& node, const ValueType& state,
                           int64_t value_dim) {
  if (value_dim == 0 ||
      (state.layout == "keys" && value_dim <= state.shape[2].value)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      node.op->name, " attribute value_dim: is ", value_dim,
      ", want keys that have as many numbers, found ", state.ToString()));
}

absl::Status CheckAlibi(const Node& node) {
  const auto attention = node.attributes.As<AttentionAttributes>();
  if (attention.alibi == 0 || attention.softcap == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      node.op->name, " attribute alibi: does not go with softcap"));
}

absl::StatusOr<Types> InferScores(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckQuery(graph, node));
  if (node.attributes.As<AttentionAttributes>().value_dim != 0) {
    return absl::InvalidArgumentError(
        "attention_scores attribute value_dim: it reads no values");
  }
  WEFT_RETURN_IF_ERROR(CheckAlibi(node));
  return Types{
      FloatType({OperandType(graph, node, 0).shape[0],
                 Dim::Number(node.attributes.As<AttentionAttributes>().heads),
                 Dim::Context()})};
}

absl::StatusOr<Types> InferSoftmax(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  WEFT_RETURN_IF_ERROR(WantWhole(graph, node, 0));
  const Shape& shape = OperandType(graph, node, 0).shape;
  for (int i = 1; i + 1 < shape.rank(); ++i) {
    if (shape[i].symbol != Dim::kNumber) {
      return absl::InvalidArgumentError(
          absl::StrCat("softmax: middle dimensions of ", shape.ToString(),
                       " must be numbers"));
    }
  }
  if (node.inputs.size() > 1) {
    if (shape.rank() != 3) {
      return absl::InvalidArgumentError(absl::StrCat(
          "softmax: sinks are for numbers by head, found ", shape.ToString()));
    }
    WEFT_RETURN_IF_ERROR(WantVector(graph, node, 1, shape[1]));
  }
  return Types{FloatType(shape)};
}

absl::StatusOr<Types> InferValues(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  const Shape& p = OperandType(graph, node, 0).shape;
  const Shape& values = OperandType(graph, node, 1).shape;
  if (p.rank() != 3 || p[2] != Dim::Context() || p[1].symbol != Dim::kNumber ||
      p[1].value % values[1].value != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        node.op->name, ": probabilities are ", p.ToString(), ", want [T,H,S]"));
  }
  const ValueType& state = OperandType(graph, node, 1);
  const int64_t dim = node.attributes.As<ValuesAttributes>().value_dim;
  WEFT_RETURN_IF_ERROR(CheckValueDim(node, state, dim));
  return Types{
      FloatType({p[0], Dim::Number(p[1].value * ValueDim(state, dim))})};
}

absl::StatusOr<Types> InferAttention(const Graph& graph, const Node& node) {
  WEFT_RETURN_IF_ERROR(CheckQuery(graph, node));
  const ValueType& keys = OperandType(graph, node, 1);
  const ValueType& values = OperandType(graph, node, 2);
  if (keys.shape[1] != values.shape[1] || keys.dtype != values.dtype) {
    return absl::InvalidArgumentError(
        "attention: keys and values differ in heads or type");
  }
  if (values.layout == "keys" && values.shape != keys.shape) {
    return absl::InvalidArgumentError(
        "attention: values that are keys differ from the keys in shape");
  }
  const auto attention = node.attributes.As<AttentionAttributes>();
  WEFT_RETURN_IF_ERROR(CheckValueDim(node, values, attention.value_dim));
  WEFT_RETURN_IF_ERROR(CheckAlibi(node));
  if (node.inputs.size() > 6) {
    WEFT_RETURN_IF_ERROR(
        WantVector(graph, node, 6, Dim::Number(attention.heads)));
  }
  return Types{FloatType(
      {OperandType(graph, node, 0).shape[0],
       Dim::Number(attention.heads * ValueDim(values, attention.value_dim))})};
}

// See AttentionAttributes::alibi.
double AlibiSlope(double alibi, int64_t heads, int64_t head) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const double step = alibi / static_cast<double>(power);
  return head < power ? std::exp2(-step * static_cast<double>(head + 1))
                      : std::exp2(-step / 2 *
                                  static_cast<double>(2 * (head - power) + 1));
}

// What scores of a row at this position are multiplied by.
double Temperature(const AttentionAttributes& a, int64_t position) {
  if (a.temperature == 0) return 1;
  const int64_t periods =
      (position + a.temperature_offset) / a.temperature_period;
  return 1 + a.temperature * std::log(1.0 + static_cast<double>(periods));
}

// Scores of one row and head, which stands at `own`, against positions 0 ..
// last: -inf outside its window.
std::vector<double> ScoreRow(const ReferenceCall& call,
                             const std::vector<double>& q, int64_t head,
                             int32_t slot, int64_t own, int64_t last) {
  const ValueType& keys = call.input_type(1);
  const int64_t head_dim = keys.shape[2].value;
  const AttentionAttributes a = call.attributes<AttentionAttributes>();
  const int64_t group = a.heads / keys.shape[1].value;
  int64_t first = a.window > 0 ? std::max<int64_t>(0, own + 1 - a.window) : 0;
  if (a.chunk > 0) first = std::max(first, own / a.chunk * a.chunk);
  const int64_t end =
      a.window > 0 ? std::min(last + 1, own + a.window) : last + 1;
  const double slope = a.alibi > 0 ? AlibiSlope(a.alibi, a.heads, head) : 0;
  std::vector<double> scores(last + 1,
                             -std::numeric_limits<double>::infinity());
  for (int64_t s = first; s < end; ++s) {
    double sum = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      sum += q[head * head_dim + d] *
             ReadKv(keys, *call.inputs[1].state, slot, s, head / group, d);
    }
    scores[s] = sum * a.scale * Temperature(a, own) -
                slope * static_cast<double>(std::abs(s - own));
    if (a.softcap > 0) {
      scores[s] = a.softcap * std::tanh(scores[s] / a.softcap);
    }
  }
  return scores;
}

// `sink` is one more number, of which nothing is left but its part of the sum.
// -inf: there is none.
constexpr double kNoSink = -std::numeric_limits<double>::infinity();

void SoftmaxRow(std::vector<double>* row, double sink) {
  double largest = sink;
  for (double x : *row) largest = std::fmax(largest, x);
  double sum = std::exp(sink - largest);
  for (double& x : *row) sum += x = std::exp(x - largest);
  for (double& x : *row) x /= sum;
}

// Adds the weighted values of one head to `out`, value_dim numbers.
void AddValues(const ValueType& values, const KvState& state, int32_t slot,
               int64_t kv_head, const std::vector<double>& probabilities,
               int64_t value_dim, double* out) {
  for (size_t s = 0; s < probabilities.size(); ++s) {
    if (probabilities[s] == 0) continue;
    for (int64_t d = 0; d < value_dim; ++d) {
      out[d] += probabilities[s] * ReadKv(values, state, slot, s, kv_head, d);
    }
  }
}

// Of row t, where the node has operand `operand`; else `last`.
int64_t OwnPosition(const ReferenceCall& call, size_t operand, int64_t t,
                    int32_t last) {
  return call.node.inputs.size() > operand
             ? Integers(call, static_cast<int>(operand))[t]
             : last;
}

void RunScores(const ReferenceCall& call) {
  const int64_t heads = call.attributes<AttentionAttributes>().heads;
  const int64_t context = call.outputs[0].columns / heads;
  for (int64_t t = 0; t < call.outputs[0].rows; ++t) {
    const std::vector<double> q = ReadRow(call, 0, t);
    float* out = OutputRow(call, 0, t);
    for (int64_t head = 0; head < heads; ++head) {
      const int32_t last = Integers(call, 2)[t];
      const std::vector<double> scores =
          ScoreRow(call, q, head, Integers(call, 3)[t],
                   OwnPosition(call, 4, t, last), last);
      for (int64_t s = 0; s < context; ++s) {
        out[head * context + s] = s < static_cast<int64_t>(scores.size())
                                      ? static_cast<float>(scores[s])
                                      : -std::numeric_limits<float>::infinity();
      }
    }
  }
}

// One for each head, where the node has them.
std::vector<double> SinksOf(const ReferenceCall& call, size_t operand) {
  return call.node.inputs.size() > operand
             ? ReadRow(call, static_cast<int>(operand), 0)
             : std::vector<double>();
}

// The last dimension is what is normalised; rows of the operand hold all
// others.
void RunSoftmax(const ReferenceCall& call) {
  const Shape& shape = call.input_type(0).shape;
  const int64_t n = shape[shape.rank() - 1].Resolve(call.step);
  const std::vector<double> sinks = SinksOf(call, 1);
  for (int64_t r = 0; r < call.outputs[0].rows; ++r) {
    std::vector<double> row = ReadRow(call, 0, r);
    for (size_t begin = 0; begin < row.size(); begin += n) {
      std::vector<double> part(row.begin() + begin, row.begin() + begin + n);
      SoftmaxRow(&part, sinks.empty() ? kNoSink : sinks[begin / n]);
      std::copy(part.begin(), part.end(), row.begin() + begin);
    }
    WriteRow(call, 0, r, row);
  }
}

void RunValues(const ReferenceCall& call) {
  const ValueType& values = call.input_type(1);
  const int64_t heads = call.input_type(0).shape[1].value;
  const int64_t context = call.inputs[0].columns / heads;
  const int64_t group = heads / values.shape[1].value;
  const int64_t value_dim = call.outputs[0].columns / heads;
  for (int64_t t = 0; t < call.outputs[0].rows; ++t) {
    const std::vector<double> p = ReadRow(call, 0, t);
    std::vector<double> out(heads * value_dim);
    for (int64_t head = 0; head < heads; ++head) {
      const auto begin = p.begin() + head * context;
      AddValues(values, *call.inputs[1].state, Integers(call, 3)[t],
                head / group,
                std::vector<double>(begin, begin + Integers(call, 2)[t] + 1),
                value_dim, out.data() + head * value_dim);
    }
    WriteRow(call, 0, t, out);
  }
}

void RunAttention(const ReferenceCall& call) {
  const ValueType& values = call.input_type(2);
  const int64_t heads = call.attributes<AttentionAttributes>().heads;
  const int64_t group = heads / values.shape[1].value;
  const int64_t value_dim = call.outputs[0].columns / heads;
  const std::vector<double> sinks = SinksOf(call, 6);
  for (int64_t t = 0; t < call.outputs[0].rows; ++t) {
    const std::vector<double> q = ReadRow(call, 0, t);
    const int32_t slot = Integers(call, 4)[t];
    std::vector<double> out(heads * value_dim);
    for (int64_t head = 0; head < heads; ++head) {
      const int32_t last = Integers(call, 3)[t];
      std::vector<double> probabilities =
          ScoreRow(call, q, head, slot, OwnPosition(call, 5, t, last), last);
      SoftmaxRow(&probabilities, sinks.empty() ? kNoSink : sinks[head]);
      AddValues(values, *call.inputs[2].state, slot, head / group,
                probabilities, value_dim, out.data() + head * value_dim);
    }
    WriteRow(call, 0, t, out);
  }
}

// Against the whole context bound, or the window: an upper estimate.
int64_t PositionsSeen(const Node& node, const Bounds& bounds) {
  const auto a = node.attributes.As<AttentionAttributes>();
  int64_t seen = bounds.context;
  if (a.window > 0) seen = std::min(seen, CappedProduct(2, a.window));
  if (a.chunk > 0) seen = std::min(seen, a.chunk);
  return seen;
}

int64_t ScoreOperations(const Graph& graph, const Node& node,
                        const Bounds& bounds) {
  return 2 * OperandType(graph, node, 0).shape.Elements(bounds) *
         PositionsSeen(node, bounds);
}

int64_t ValueOperations(const Graph& graph, const Node& node,
                        const Bounds& bounds) {
  return 2 * OperandType(graph, node, 0).shape.Elements(bounds) *
         ValueDim(OperandType(graph, node, 1),
                  node.attributes.As<ValuesAttributes>().value_dim);
}

int64_t AttentionOperations(const Graph& graph, const Node& node,
                            const Bounds& bounds) {
  const int64_t elements =
      OperandType(graph, node, 0).shape.Elements(bounds) +
      graph.value(node.outputs[0]).type.shape.Elements(bounds);
  return CappedProduct(2 * elements, PositionsSeen(node, bounds));
}

int64_t SoftmaxOperations(const Graph& graph, const Node& node,
                          const Bounds& bounds) {
  return 4 * OperandType(graph, node, 0).shape.Elements(bounds);
}

constexpr OperandSchema kScoreOperands[] = {
    RowsOperand("q"), StateOperand("keys", "keys"),
    IndexOperand("positions", IndexKind::kPosition, 0),
    IndexOperand("sequence", IndexKind::kSequence, 0),
    Optional(IndexOperand("own_positions", IndexKind::kPosition, 0))};
constexpr OperandSchema kSoftmaxOperands[] = {RowsOperand("x"),
                                              Optional(WeightOperand("sinks"))};
constexpr OperandSchema kValueOperands[] = {
    RowsOperand("p"), StateOperand("values", ""),
    IndexOperand("positions", IndexKind::kPosition, 0),
    IndexOperand("sequence", IndexKind::kSequence, 0)};
constexpr OperandSchema kAttentionOperands[] = {
    RowsOperand("q"),
    StateOperand("keys", "keys"),
    StateOperand("values", ""),
    IndexOperand("positions", IndexKind::kPosition, 0),
    IndexOperand("sequence", IndexKind::kSequence, 0),
    Optional(IndexOperand("own_positions", IndexKind::kPosition, 0)),
    Optional(WeightOperand("sinks"))};

constexpr AttributeSchema kAttentionAttributes[] = {
    Field<&AttentionAttributes::heads>("heads", "of the query")
        .From(1, 1 << 16),
    Field<&AttentionAttributes::scale>("scale", "of scores").Above(0),
    Field<&AttentionAttributes::window>(
        "window",
        "positions that a row sees, its own the last; with own_positions, as "
        "many on the other side; 0: all")
        .Optional()
        .From(0, std::numeric_limits<int32_t>::max()),
    Field<&AttentionAttributes::softcap>(
        "softcap", "c: scores become c * tanh(score / c); 0: they stay")
        .Optional()
        .AtLeast(0),
    Field<&AttentionAttributes::chunk>(
        "chunk",
        "positions come in chunks of so many, and a row sees its own; 0: all")
        .Optional()
        .From(0, std::numeric_limits<int32_t>::max()),
    Field<&AttentionAttributes::temperature>(
        "temperature",
        "t: scores of position p are times 1 + t ln(1 + floor((p + offset) / "
        "period)), before softcap; 0: they stay")
        .Optional()
        .AtLeast(0),
    Field<&AttentionAttributes::temperature_period>("temperature_period",
                                                    "see temperature")
        .Optional()
        .From(1, std::numeric_limits<int32_t>::max()),
    Field<&AttentionAttributes::temperature_offset>("temperature_offset",
                                                    "see temperature")
        .Optional()
        .From(0, std::numeric_limits<int32_t>::max()),
    Field<&AttentionAttributes::alibi>(
        "alibi",
        "a: scores become less by a slope for each position between, "
        "2^(-a i / H) of head i of H from 1 on (H a power of two); 0: they "
        "stay")
        .Optional()
        .AtLeast(0),
    Field<&AttentionAttributes::value_dim>(
        "value_dim", "of attention: as attention_values has it")
        .Optional()
        .From(0, kMaxHeadDim)};
constexpr AttributeSchema kValuesAttributes[] = {
    Field<&ValuesAttributes::value_dim>(
        "value_dim",
        "with keys for values: the first so many numbers of a key are its "
        "value; 0: all")
        .Optional()
        .From(0, kMaxHeadDim)};

constexpr OpDef AttentionScores() {
  OpDef op;
  op.name = "attention_scores";
  op.meaning =
      "f32[T,H,S] = scale * q f32[T,H*D] with the keys of its sequence, -inf "
      "where unseen";
  op.operands = kScoreOperands;
  op.attributes = kAttentionAttributes;
  op.primitive = true;
  op.infer = InferScores;
  op.reference = RunScores;
  op.operations = ScoreOperations;
  return op;
}

constexpr OpDef SoftmaxRecord() {
  OpDef op;
  op.name = "softmax";
  op.meaning =
      "e^x / sum(e^x) over the last dimension; sinks f32[H]: a number more in "
      "the sum of each head";
  op.operands = kSoftmaxOperands;
  op.primitive = true;
  op.in_place_operand = FirstOperand;
  op.infer = InferSoftmax;
  op.reference = RunSoftmax;
  op.operations = SoftmaxOperations;
  return op;
}

constexpr OpDef AttentionValues() {
  OpDef op;
  op.name = "attention_values";
  op.meaning = "f32[T,H*D] = p f32[T,H,S] times the values of its sequence";
  op.operands = kValueOperands;
  op.attributes = kValuesAttributes;
  op.primitive = true;
  op.infer = InferValues;
  op.reference = RunValues;
  op.operations = ValueOperations;
  return op;
}

constexpr OpDef Attention() {
  OpDef op;
  op.name = "attention";
  op.meaning =
      "f32[T,H*D]: scores, softmax (with sinks) and values in one sweep over "
      "pages";
  op.operands = kAttentionOperands;
  op.attributes = kAttentionAttributes;
  op.made_of = "attention_scores, softmax, attention_values";
  op.infer = InferAttention;
  op.reference = RunAttention;
  op.operations = AttentionOperations;
  return op;
}

}  // namespace

absl::Span<const AttributeSchema> AttentionAttributes::Schema() {
  return kAttentionAttributes;
}
absl::Span<const AttributeSchema> ValuesAttributes::Schema() {
  return kValuesAttributes;
}

constexpr OpDef kAttentionScoresOp = AttentionScores();
constexpr OpDef kSoftmaxOp = SoftmaxRecord();
constexpr OpDef kAttentionValuesOp = AttentionValues();
constexpr OpDef kAttentionOp = Attention();

}  // namespace weft
