// Runs graphs with the ops' reference functions: the oracle for passes and
// kernels.
//
// Many graphs of one model are run on one step, and most of their nodes are the
// same: a result is kept under a hash of the op, its attributes and what its
// operands hold, so only what is new is computed. Results that two runs did not
// ask for are dropped.
//
// One step of one sequence, in slot 0. Not thread-safe; slow, on one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/op_table.h"
#include "runtime/check/content.h"

namespace weft {

// What a step is called with, by name of the graph's input; of numbers in f32
// their bits.
using StepInputs = std::map<std::string, std::vector<int32_t>>;

// Tokens of one sequence from `position` on, logits wanted for every row, and
// every row with these scales of adapters.
StepInputs TokenInputs(absl::Span<const int32_t> tokens, int32_t position,
                       absl::Span<const float> adapter_scales = {});

// Contents of all values of a graph, by id; null for those that no node in the
// order makes or reads.
using Contents = std::vector<ContentPointer>;

class ReferenceEvaluator {
 public:
  // What the node's results hold, given what its operands hold. `step` has the
  // step's own rows.
  std::vector<ContentPointer> Evaluate(const Graph& graph, const Node& node,
                                       const Bounds& step,
                                       const Contents& operands);

  // How far each number of each result moves, at most, when the numbers that
  // the node is given in float32 move by what float kernels round on their way:
  // nearly nothing, unless something is rounded to few bits and lies in the
  // middle of two. By result and number (Numbers of content.h).
  std::vector<std::vector<double>> MovedByRounding(const Graph& graph,
                                                   const Node& node,
                                                   const Bounds& step,
                                                   const Contents& operands);

  // All values of a graph. States are empty before. Where `given` has a content
  // for a value, nodes that read the value see that one instead of what was
  // computed, or comes from `inputs`. Errors: an input that is not given, a
  // weight without bytes.
  absl::StatusOr<Contents> Run(const Graph& graph, const StepInputs& inputs,
                               const Bounds& step, const Contents& given);

  // What a weight holds, made if it is only described.
  absl::StatusOr<ContentPointer> Weight(const Value& weight);

  // Forgets what has not been asked for since the last call.
  void NextRun();
  // Weights that are made under a name may be others from now on.
  void ForgetWeights() { weights_.clear(); }

 private:
  struct Result {
    std::vector<ContentPointer> contents;
    int64_t used = 0;
  };
  std::map<std::string, Result> results_;  // by what they depend on
  std::map<std::string, ContentPointer> weights_;
  int64_t run_ = 0;
};

// A window of its parent's columns, as an op that is a view gives it.
ContentPointer ViewContent(const ValueType& parent, const Node& view,
                           const ValueType& type, const Bounds& step,
                           const Content& content);

}  // namespace weft
