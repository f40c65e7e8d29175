#include "runtime/check/reference_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/standard_inputs.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "ops/storage.h"

namespace weft {
namespace {

// Everything that a node's results depend on, as text.
std::string KeyOf(const Graph& graph, const Node& node, const Bounds& step,
                  const Contents& operands) {
  std::string key = absl::StrCat(node.op->name, "|", step.tokens, ",",
                                 step.rows, ",", step.context);
  node.attributes.ForEach(
      [&key](absl::string_view name, const AttributeValue& value) {
        absl::StrAppend(&key, "|", name, "=");
        // Bits, so that no two numbers look alike.
        if (const auto* f = std::get_if<double>(&value)) {
          uint64_t bits;
          std::memcpy(&bits, f, sizeof(bits));
          absl::StrAppend(&key, "f", bits);
        } else if (const auto* i = std::get_if<int64_t>(&value)) {
          absl::StrAppend(&key, *i);
        } else {
          absl::StrAppend(&key, "\"", std::get<std::string>(value), "\"");
        }
      });
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto [high, low] = operands[i]->hash();
    absl::StrAppend(&key, "|", graph.value(node.inputs[i]).type.ToString(), ":",
                    absl::Hex(high), ",", absl::Hex(low));
  }
  for (ValueId id : node.outputs) {
    absl::StrAppend(&key, "|", graph.value(id).type.ToString());
  }
  return key;
}

// Operands of a reference call over contents and buffers, and the page tables
// of states.
class Operands {
 public:
  explicit Operands(size_t most) {
    states_.reserve(most);
    tables_.reserve(most);
  }

  void Add(const ValueType& type, const Bounds& step, uint8_t* data) {
    Operand operand = MatrixOperand(type, step, data);
    if (IsStateType(type)) {
      const int64_t pages = (operand.rows + kPageTokens - 1) / kPageTokens;
      tables_.emplace_back();
      for (int64_t p = 0; p < pages; ++p) tables_.back().push_back(p);
      states_.push_back(StateOf(type, data, tables_.back()));
      operand.state = &states_.back();
    }
    operands_.push_back(operand);
  }

  const Operand* data() const { return operands_.data(); }

 private:
  std::vector<Operand> operands_;
  std::vector<KvState> states_;
  std::vector<std::vector<int32_t>> tables_;
};

}  // namespace

StepInputs TokenInputs(absl::Span<const int32_t> tokens, int32_t position,
                       absl::Span<const float> adapter_scales) {
  StepInputs inputs;
  const auto add = [&](StandardInput input, int64_t number) {
    inputs[Info(input).name].push_back(static_cast<int32_t>(number));
  };
  const int64_t count = static_cast<int64_t>(tokens.size());
  for (int64_t t = 0; t < count; ++t) {
    add(StandardInput::kIds, tokens[t]);
    add(StandardInput::kPositions, position + t);
    add(StandardInput::kSequence, 0);
    add(StandardInput::kOutputRows, t);
    add(StandardInput::kLastPositions, position + count - 1);
    for (float scale : adapter_scales) {
      int32_t bits;
      std::memcpy(&bits, &scale, sizeof(bits));
      add(StandardInput::kAdapterScales, bits);
    }
  }
  return inputs;
}

ContentPointer ViewContent(const ValueType& parent, const Node& view,
                           const ValueType& type, const Bounds& step,
                           const Content& content) {
  const Operand from = MatrixOperand(parent, step, nullptr);
  const Operand to = MatrixOperand(type, step, nullptr);
  const int64_t begin =
      view.attributes.As<SliceAttributes>().begin * sizeof(float);
  std::vector<uint8_t> bytes(to.rows * to.row_bytes);
  for (int64_t row = 0; row < to.rows; ++row) {
    std::memcpy(bytes.data() + row * to.row_bytes,
                content.bytes().data() + row * from.row_bytes + begin,
                to.row_bytes);
  }
  return std::make_shared<Content>(std::move(bytes));
}

namespace {

// Relative; a few roundings of float32.
constexpr float kNudge = 0x1p-19f;
// As in a block that is rounded with one scale, that of its largest number.
constexpr int64_t kNudgedBlock = 32;

enum class Nudge { kAway, kTowards, kEither, kOther };

// All away from zero or towards it, but for those that scales are made of; or
// each as it comes.
ContentPointer Nudged(const Content& content, Nudge way) {
  std::vector<float> x(content.bytes().size() / sizeof(float));
  std::memcpy(x.data(), content.bytes().data(), x.size() * sizeof(float));
  std::mt19937 random(way == Nudge::kEither ? 1 : 2);
  const bool one_way = way == Nudge::kAway || way == Nudge::kTowards;
  for (size_t begin = 0; begin < x.size(); begin += kNudgedBlock) {
    const size_t end = std::min(x.size(), begin + kNudgedBlock);
    float largest = 0;
    for (size_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::fabs(x[i]));
    }
    for (size_t i = begin; i < end; ++i) {
      if (one_way && std::fabs(x[i]) == largest) continue;
      const bool away = one_way ? way == Nudge::kAway : random() % 2 == 0;
      x[i] *= away ? 1 + kNudge : 1 - kNudge;
    }
  }
  std::vector<uint8_t> bytes(content.bytes().size());
  std::memcpy(bytes.data(), x.data(), x.size() * sizeof(float));
  return std::make_shared<Content>(std::move(bytes));
}

}  // namespace

std::vector<std::vector<double>> ReferenceEvaluator::MovedByRounding(
    const Graph& graph, const Node& node, const Bounds& step,
    const Contents& operands) {
  const auto numbers = [&](const Contents& results) {
    std::vector<std::vector<double>> all;
    for (size_t i = 0; i < results.size(); ++i) {
      all.push_back(
          Numbers(graph.value(node.outputs[i]).type, step, *results[i]));
    }
    return all;
  };
  const auto plain = numbers(Evaluate(graph, node, step, operands));
  std::vector<std::vector<double>> moved;
  for (const std::vector<double>& result : plain) {
    moved.emplace_back(result.size(), 0.0);
  }
  for (const Nudge way :
       {Nudge::kAway, Nudge::kTowards, Nudge::kEither, Nudge::kOther}) {
    Contents nudged = operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = graph.value(node.inputs[i]);
      if (value.kind != ValueKind::kWeight && !IsStateType(value.type) &&
          value.type.dtype == DType::kF32) {
        nudged[i] = Nudged(*operands[i], way);
      }
    }
    const auto results = numbers(Evaluate(graph, node, step, nudged));
    for (size_t i = 0; i < results.size(); ++i) {
      for (size_t k = 0; k < results[i].size(); ++k) {
        const double move = std::fabs(results[i][k] - plain[i][k]);
        if (move > moved[i][k]) moved[i][k] = move;
      }
    }
  }
  return moved;
}

std::vector<ContentPointer> ReferenceEvaluator::Evaluate(
    const Graph& graph, const Node& node, const Bounds& step,
    const Contents& operands) {
  const OpDef& op = OpOf(node);
  if (op.view) {
    return {ViewContent(graph.value(node.inputs[0]).type, node,
                        graph.value(node.outputs[0]).type, step, *operands[0])};
  }
  Result& result = results_[KeyOf(graph, node, step, operands)];
  result.used = run_;
  if (!result.contents.empty()) return result.contents;
  Operands inputs(node.inputs.size()), outputs(node.outputs.size());
  std::vector<std::vector<uint8_t>> buffers;
  for (ValueId id : node.outputs) {
    buffers.emplace_back(StorageBytes(graph.value(id).type, step));
  }
  // A new version of a state begins as a copy of the one before.
  if (op.writes_state) {
    const absl::Span<const uint8_t> before = operands[0]->bytes();
    buffers[0].assign(before.begin(), before.end());
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const uint8_t* data = operands[i]->bytes().data();
    if (op.writes_state && i == 0) data = buffers[0].data();
    inputs.Add(graph.value(node.inputs[i]).type, step,
               const_cast<uint8_t*>(data));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    outputs.Add(graph.value(node.outputs[i]).type, step, buffers[i].data());
  }
  op.reference({graph, node, inputs.data(), outputs.data(), step});
  for (std::vector<uint8_t>& buffer : buffers) {
    result.contents.push_back(std::make_shared<Content>(std::move(buffer)));
  }
  return result.contents;
}

absl::StatusOr<ContentPointer> ReferenceEvaluator::Weight(const Value& weight) {
  const WeightData& data = weight.data;
  ContentPointer& content = weights_[absl::StrCat(
      weight.name, "|", weight.type.ToString(), "|",
      data.make == nullptr ? reinterpret_cast<uintptr_t>(data.bytes.data())
                           : 0)];
  if (content != nullptr) return content;
  if (data.make != nullptr) {
    std::vector<uint8_t> bytes(StorageBytes(weight.type, {}));
    data.make(bytes.data());
    content = std::make_shared<Content>(std::move(bytes));
  } else if (!data.bytes.empty()) {
    content = std::make_shared<Content>(data.bytes, data.owner);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot run graph: weight ", weight.name,
                     " has no bytes: give the model file that has them"));
  }
  return content;
}

absl::StatusOr<Contents> ReferenceEvaluator::Run(const Graph& graph,
                                                 const StepInputs& inputs,
                                                 const Bounds& step,
                                                 const Contents& given) {
  const auto is_given = [&](ValueId id) {
    return id < static_cast<ValueId>(given.size()) && given[id] != nullptr;
  };
  Contents contents(graph.value_count());
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kTemporary && is_given(id)) {
      contents[id] = given[id];
    } else if (value.kind == ValueKind::kState) {
      contents[id] = std::make_shared<Content>(
          std::vector<uint8_t>(StorageBytes(value.type, step)));
    } else if (value.kind == ValueKind::kInput) {
      const auto it = inputs.find(value.name);
      if (it == inputs.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cannot run graph: input ", value.name, " is not given"));
      }
      const uint8_t* data = reinterpret_cast<const uint8_t*>(it->second.data());
      contents[id] = std::make_shared<Content>(
          std::vector<uint8_t>(data, data + it->second.size() * 4));
    }
  }
  for (NodeId n : graph.order()) {
    const Node& node = graph.node(n);
    Contents operands;
    for (ValueId id : node.inputs) {
      if (graph.IsWeight(id) && contents[id] == nullptr) {
        WEFT_ASSIGN_OR_RETURN(ContentPointer weight, Weight(graph.value(id)));
        contents[id] = std::move(weight);
      }
      operands.push_back(is_given(id) ? given[id] : contents[id]);
    }
    const std::vector<ContentPointer> results =
        Evaluate(graph, node, step, operands);
    for (size_t i = 0; i < results.size(); ++i) {
      contents[node.outputs[i]] = results[i];
    }
  }
  return contents;
}

void ReferenceEvaluator::NextRun() {
  for (auto it = results_.begin(); it != results_.end();) {
    it = it->second.used < run_ ? results_.erase(it) : std::next(it);
  }
  ++run_;
}

}  // namespace weft
