// Runs any graph, of a language model or not: compiled by the same pipeline,
// executed by the same executor.
//
//   absl::StatusOr<weft::Graph> graph = weft::Parse(text);
//   auto runner = weft::GraphRunner::Create(*std::move(graph), weights);
//   std::vector<float> x(3 * 64), y(3 * 10);   // three rows
//   absl::Status s = (*runner)->Run({{"x", x}}, {{"y", y}});
//
// Inputs and outputs are found by name. T and R are what the sizes of the
// inputs say, at most the graph's bounds. One output row is the same bits
// however many rows are run at once, on any number of threads.
//
// Graphs with states need a sequence's book-keeping and are for Engine. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "runtime/execution/executor.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"

namespace weft {

// By name. `owner` keeps the bytes alive; without one they must outlive the
// runner.
using NamedWeights = std::map<std::string, WeightData>;

// Owns `numbers` in this type, rows of `columns` behind each other: f32, f16,
// bf16 or a block type. Errors: rows that are not whole or not whole blocks,
// numbers that the type cannot hold.
absl::StatusOr<WeightData> EncodeWeight(DType type, int64_t columns,
                                        absl::Span<const float> numbers);

struct GraphRunnerOptions {
  GraphRunnerOptions();  // the machine's best instruction set

  // Buckets beyond the graph's bound of tokens are left out; the bound itself
  // is always one.
  CompileOptions compile;
  int threads = 0;  // 0: physical cores that the process may use
};

// The numbers of one input, row after row.
struct InputNumbers {
  absl::string_view name;
  std::variant<absl::Span<const float>, absl::Span<const int32_t>> numbers;
};

// Where one output goes, row after row; overlaps nothing else.
struct OutputNumbers {
  absl::string_view name;
  absl::Span<float> numbers;
};

class GraphRunner {
 public:
  // Errors: a graph that is not legal; a weight without bytes, of another size
  // or not aligned to 4, or one that the graph does not have; a state; inputs
  // that are not f32 or i32, outputs that are not f32 or no node's result;
  // integers that nobody could check (OpSchema::operands); no memory.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Create(
      Graph graph, const NamedWeights& weights,
      const GraphRunnerOptions& options = GraphRunnerOptions());

  // Every input and every output once, in any order. Errors name it: one that
  // is missing, unknown or given twice, of another type, of a size that is no
  // whole number of rows or does not go with the others, more rows than the
  // graph is planned for, integers out of range. Then nothing has run. Takes no
  // memory.
  absl::Status Run(absl::Span<const InputNumbers> inputs,
                   absl::Span<const OutputNumbers> outputs);
  absl::Status Run(std::initializer_list<InputNumbers> inputs,
                   std::initializer_list<OutputNumbers> outputs) {
    return Run(absl::MakeConstSpan(inputs.begin(), inputs.size()),
               absl::MakeConstSpan(outputs.begin(), outputs.size()));
  }

  // As the graph has them; sizes with T and R.
  absl::Span<const Port> inputs() const { return inputs_; }
  absl::Span<const Port> outputs() const { return executor_->outputs(); }
  const Plan& plan() const { return *plan_; }

 private:
  // What an input's integers must be below, all of it.
  struct Limit {
    size_t input;
    Dim below;
  };

  GraphRunner() = default;
  absl::Status CollectInputs(const Graph& graph);
  absl::Status CollectLimits(const Graph& graph);
  absl::Status TakeInputs(absl::Span<const InputNumbers> inputs, Bounds* step);
  absl::Status TakeOutputs(absl::Span<const OutputNumbers> outputs,
                           const Bounds& step);
  absl::Status CheckLimits(absl::Span<const InputNumbers> inputs,
                           const Bounds& step) const;

  std::shared_ptr<Plan> plan_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Executor> executor_;
  std::vector<Port> inputs_;
  std::vector<Limit> limits_;
  std::vector<int> executor_inputs_;  // place in inputs_ of each that is read
  // Of the step that runs: reused, so that a step takes no memory.
  std::vector<const void*> given_, read_;
  std::vector<void*> written_;
};

}  // namespace weft
