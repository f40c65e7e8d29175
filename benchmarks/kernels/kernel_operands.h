// The operands of one case in memory: inputs, weights and states hold numbers
// that depend on nothing but the case, what other nodes make of them comes from
// reference functions.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/kernels/kernel_cases.h"
#include "runtime/machine/arena.h"

namespace weft {

// Makes numbers for floats of any kind; of a matrix, those of a row come one
// after the other.
using FillFunction =
    std::function<void(std::mt19937& random, int64_t count, float* out)>;
// The numbers that a value of the case holds.
using FillOfValue = std::function<FillFunction(const Value& value)>;

// Between -1 and 1.
void FillUniform(std::mt19937& random, int64_t count, float* out);

class KernelOperands {
 public:
  // For a step of `rows` rows, at most the case's; what the first rows hold
  // does not depend on how many there are. Errors: no memory, numbers that do
  // not fit the weight's type.
  static absl::StatusOr<std::unique_ptr<KernelOperands>> Create(
      const KernelCase& kernel_case, int64_t rows, const FillOfValue& fill);

  const Graph& graph() const { return graph_; }
  const Node& node() const { return graph_.node(graph_.order().back()); }
  // The step's own bounds.
  const Bounds& step() const { return step_; }

  // The node's; the new version of a state is where the old one is.
  const std::vector<Operand>& inputs() const { return inputs_; }
  const std::vector<Operand>& outputs() const { return outputs_; }

  // Puts states back as they were and 0xff (as floats, NaN) into results.
  void Restore();
  // Whether nothing but the results has changed since Create, and nothing
  // behind any value.
  bool OthersIntact() const;

 private:
  KernelOperands(const Graph& graph, const Bounds& step)
      : graph_(graph), step_(step) {}

  absl::Status Make(const FillOfValue& fill);
  absl::Status MakeValue(ValueId id, const FillOfValue& fill);
  absl::Status FillValue(const Value& value, const Operand& operand,
                         const FillFunction& fill) const;
  bool IsResult(ValueId id) const;

  const Graph graph_;
  const Bounds step_;
  std::vector<Operand> values_;  // by id
  std::vector<KvState> states_;  // by id
  std::vector<int32_t> page_table_;
  std::vector<Arena> memory_;                  // by id
  std::vector<std::vector<uint8_t>> as_made_;  // by id, what memory_ held
  std::vector<Operand> inputs_, outputs_;
};

}  // namespace weft
