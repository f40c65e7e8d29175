#include "runtime/execution/graph_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/op_table.h"
#include "ops/quantize.h"
#include "runtime/machine/cpus.h"
#include "runtime/plan/compile.h"
#include "runtime/plan/index_inputs.h"

namespace weft {
namespace {

constexpr int64_t kMaxTokens = 1 << 16;

absl::Status CannotRun(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot run graph: ", where, ": ", what));
}

// T and R may only be the number of a value's rows: what else they would be is
// the bucket's bound, not the step's number.
absl::Status CheckPort(const Port& port) {
  for (int i = 1; i < port.type.shape.rank(); ++i) {
    const Dim& dim = port.type.shape[i];
    if (dim == Dim::Tokens() || dim == Dim::Rows()) {
      return CannotRun(port.name,
                       absl::StrCat("is ", port.type.ToString(),
                                    ": T and R can be the first dimension"));
    }
  }
  return absl::OkStatus();
}

absl::Status BindWeights(const NamedWeights& weights, Graph* graph) {
  for (ValueId id = 0; id < graph->value_count(); ++id) {
    Value& value = graph->value(id);
    if (value.kind == ValueKind::kState) {
      return CannotRun(value.name, "is a state: run the model with Engine");
    }
    if (value.kind != ValueKind::kWeight) continue;
    if (!value.type.layout.empty()) {
      return CannotRun(value.name,
                       absl::StrCat("is ", value.type.ToString(),
                                    ": give weights row after row"));
    }
    const auto it = weights.find(value.name);
    if (it != weights.end()) value.data = it->second;
    const absl::Span<const uint8_t> bytes = value.data.bytes;
    const int64_t want = ValueBytes(value.type, graph->bounds);
    if (static_cast<int64_t>(bytes.size()) != want) {
      return CannotRun(
          value.name,
          absl::StrCat("weight ",
                       it == weights.end() && bytes.empty()
                           ? std::string("is missing")
                           : absl::StrCat("of ", bytes.size(), " bytes"),
                       ": ", value.type.ToString(), " takes ", want));
    }
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0) {
      return CannotRun(value.name, "weight is not aligned to 4 bytes");
    }
  }
  for (const auto& [name, data] : weights) {
    const ValueId id = graph->FindValue(name);
    if (id == kNone || !graph->IsWeight(id)) {
      return CannotRun(name, "the graph has no weight of this name");
    }
  }
  return absl::OkStatus();
}

// Place of the port with this name, or -1.
int FindPort(absl::Span<const Port> ports, absl::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::StatusOr<WeightData> EncodeWeight(DType type, int64_t columns,
                                        absl::Span<const float> numbers) {
  const int64_t n = static_cast<int64_t>(numbers.size());
  if (columns < 1 || n % columns != 0 ||
      columns % Info(type).block_elements != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot encode weight: ", n, " numbers in rows of ", columns, " as ",
        Info(type).name, ": rows are whole, and whole blocks"));
  }
  auto bytes = std::make_shared<std::vector<uint8_t>>(n / columns *
                                                      RowBytes(type, columns));
  WEFT_RETURN_IF_ERROR(QuantizeRow(type, numbers.data(), bytes->data(), n));
  WeightData data;
  data.bytes = *bytes;
  data.owner = bytes;
  return data;
}

GraphRunnerOptions::GraphRunnerOptions() { compile.isa = DetectIsa(); }

absl::Status GraphRunner::CollectInputs(const Graph& graph) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kInput) continue;
    if ((value.type.dtype != DType::kF32 && value.type.dtype != DType::kI32) ||
        !value.type.layout.empty()) {
      return CannotRun(value.name,
                       absl::StrCat("input is ", value.type.ToString(),
                                    ": inputs are f32 or i32"));
    }
    inputs_.push_back({value.name, value.type});
    WEFT_RETURN_IF_ERROR(CheckPort(inputs_.back()));
  }
  return absl::OkStatus();
}

absl::Status GraphRunner::CollectLimits(const Graph& graph) {
  WEFT_ASSIGN_OR_RETURN(std::vector<IndexUse> uses, IndexUses(graph));
  for (const IndexUse& use : uses) {
    if (use.kind == IndexKind::kAny) continue;
    Limit limit;
    limit.input = FindPort(inputs_, graph.value(use.input).name);
    // There is one sequence where there is no state.
    limit.below = use.kind == IndexKind::kSequence ? Dim::Number(1) : use.below;
    const bool known =
        std::any_of(limits_.begin(), limits_.end(), [&](const Limit& other) {
          return other.input == limit.input && other.below == limit.below;
        });
    if (!known) limits_.push_back(limit);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Create(
    Graph graph, const NamedWeights& weights,
    const GraphRunnerOptions& options) {
  WEFT_RETURN_IF_ERROR(VerifyGraph(graph));
  if (graph.bounds.tokens > kMaxTokens) {
    return CannotRun("header", absl::StrCat("tokens<=", graph.bounds.tokens,
                                            ": at most ", kMaxTokens));
  }
  WEFT_RETURN_IF_ERROR(BindWeights(weights, &graph));
  std::unique_ptr<GraphRunner> runner(new GraphRunner);
  WEFT_RETURN_IF_ERROR(runner->CollectInputs(graph));
  for (const auto& [name, id] : graph.outputs()) {
    const Port port = {name, graph.value(id).type};
    if (port.type.dtype != DType::kF32) {
      return CannotRun(name, absl::StrCat("output is ", port.type.ToString(),
                                          ": outputs are f32"));
    }
    WEFT_RETURN_IF_ERROR(CheckPort(port));
  }

  CompileOptions compile = options.compile;
  const int64_t most = graph.bounds.tokens;
  std::vector<int64_t>& buckets = compile.buckets;
  buckets.erase(
      std::remove_if(buckets.begin(), buckets.end(),
                     [most](int64_t n) { return n < 1 || n >= most; }),
      buckets.end());
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  buckets.push_back(most);
  WEFT_ASSIGN_OR_RETURN(Plan plan, Compile(std::move(graph), compile));
  for (const Graph& bucket : plan.buckets) {
    WEFT_RETURN_IF_ERROR(runner->CollectLimits(bucket));
  }

  WEFT_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadPool> threads,
      ThreadPool::Create(options.threads > 0 ? options.threads
                                             : DefaultThreads()));
  runner->threads_ = std::move(threads);
  WEFT_RETURN_IF_ERROR(MakeWeights(plan, *runner->threads_));
  runner->plan_ = std::make_shared<Plan>(std::move(plan));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                        Executor::Create(runner->plan_, runner->threads_.get(),
                                         /*cache=*/nullptr));
  runner->executor_ = std::move(executor);
  for (const Port& port : runner->executor_->inputs()) {
    runner->executor_inputs_.push_back(FindPort(runner->inputs_, port.name));
  }
  runner->given_.resize(runner->inputs_.size());
  runner->read_.resize(runner->executor_inputs_.size());
  runner->written_.resize(runner->outputs().size());
  return runner;
}

absl::Status GraphRunner::TakeInputs(absl::Span<const InputNumbers> inputs,
                                     Bounds* step) {
  std::fill(given_.begin(), given_.end(), nullptr);
  *step = {0, 0, plan_->context()};
  for (const InputNumbers& input : inputs) {
    const int at = FindPort(inputs_, input.name);
    if (at < 0) return CannotRun(input.name, "the graph has no such input");
    const ValueType& type = inputs_[at].type;
    if (given_[at] != nullptr) return CannotRun(input.name, "is given twice");
    const bool integers = input.numbers.index() == 1;
    if (integers != (type.dtype == DType::kI32)) {
      return CannotRun(input.name,
                       absl::StrCat("wants ", Info(type.dtype).name, ", found ",
                                    integers ? "i32" : "f32"));
    }
    const int64_t n =
        static_cast<int64_t>(integers ? std::get<1>(input.numbers).size()
                                      : std::get<0>(input.numbers).size());
    given_[at] =
        integers ? static_cast<const void*>(std::get<1>(input.numbers).data())
                 : static_cast<const void*>(std::get<0>(input.numbers).data());
    const int64_t row = type.shape.RowElements(*step);
    const Dim& first = type.shape[0];
    int64_t* symbol = first == Dim::Tokens() ? &step->tokens
                      : first == Dim::Rows() ? &step->rows
                                             : nullptr;
    const int64_t rows = symbol == nullptr ? first.Resolve(*step)
                         : *symbol > 0     ? *symbol
                                           : n / row;
    if (n != rows * row || n == 0) {
      return CannotRun(input.name,
                       absl::StrCat(n, " numbers for ", type.ToString(),
                                    symbol != nullptr && *symbol == 0
                                        ? std::string(": want whole rows")
                                        : absl::StrCat(": want ", rows * row)));
    }
    if (rows > plan_->max_tokens() && symbol != nullptr) {
      return CannotRun(input.name,
                       absl::StrCat(rows, " rows: the graph is planned for ",
                                    plan_->max_tokens()));
    }
    if (symbol != nullptr) *symbol = rows;
  }
  for (size_t i = 0; i < given_.size(); ++i) {
    if (given_[i] == nullptr) {
      return CannotRun(inputs_[i].name, "input is missing");
    }
  }
  step->tokens = std::max<int64_t>(step->tokens, 1);
  step->rows = std::max<int64_t>(step->rows, 1);
  return absl::OkStatus();
}

absl::Status GraphRunner::CheckLimits(absl::Span<const InputNumbers> inputs,
                                      const Bounds& step) const {
  for (const InputNumbers& input : inputs) {
    if (input.numbers.index() != 1) continue;
    const size_t at = static_cast<size_t>(FindPort(inputs_, input.name));
    for (const Limit& limit : limits_) {
      if (limit.input != at) continue;
      const int64_t below = limit.below.Resolve(step);
      for (int32_t number : std::get<1>(input.numbers)) {
        if (number >= 0 && number < below) continue;
        return CannotRun(input.name,
                         absl::StrCat(number, ": want 0 to ", below - 1));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status GraphRunner::TakeOutputs(absl::Span<const OutputNumbers> outputs,
                                      const Bounds& step) {
  std::fill(written_.begin(), written_.end(), nullptr);
  for (const OutputNumbers& output : outputs) {
    const int at = FindPort(this->outputs(), output.name);
    if (at < 0) return CannotRun(output.name, "the graph has no such output");
    if (written_[at] != nullptr) {
      return CannotRun(output.name, "is given twice");
    }
    const ValueType& type = this->outputs()[at].type;
    const int64_t want = type.shape.Elements(step);
    if (static_cast<int64_t>(output.numbers.size()) != want) {
      return CannotRun(
          output.name,
          absl::StrCat("room for ", output.numbers.size(), " numbers, ",
                       type.ToString(), " has ", want, " in this step"));
    }
    written_[at] = output.numbers.data();
  }
  for (size_t i = 0; i < written_.size(); ++i) {
    if (written_[i] == nullptr) {
      return CannotRun(this->outputs()[i].name, "output is missing");
    }
  }
  return absl::OkStatus();
}

absl::Status GraphRunner::Run(absl::Span<const InputNumbers> inputs,
                              absl::Span<const OutputNumbers> outputs) {
  Bounds step;
  WEFT_RETURN_IF_ERROR(TakeInputs(inputs, &step));
  WEFT_RETURN_IF_ERROR(CheckLimits(inputs, step));
  WEFT_RETURN_IF_ERROR(TakeOutputs(outputs, step));
  for (size_t i = 0; i < read_.size(); ++i) {
    read_[i] = given_[executor_inputs_[i]];
  }
  return executor_->Run(Step{step.tokens, step.rows, read_, written_});
}

}  // namespace weft
