// Whether passes keep what a graph computes: the graph before a pass and the
// one after it are run with reference functions on the same step, and every
// value that both have is compared, on the operands that it had before. So the
// first difference is where the pass went wrong, not where it was noticed.
//
// Passes that keep float operations in order must keep every bit; the others
// (PassEntry::tolerance) may move results by that much of a row's root mean
// square.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/pipeline.h"
#include "runtime/check/reference_run.h"
#include "runtime/plan/compile.h"

namespace weft {

struct PassCheck {
  std::string pass;
  int64_t bucket = 0;  // 0: runs once for all
  double tolerance = 0;
  // The largest difference of all values, and the node that gives it.
  double worst = 0;
  std::string node;
  // What is wrong, for people; empty: nothing.
  std::string fault;
};

class PassChecker {
 public:
  // `evaluator` may be shared with other checks and must outlive this one.
  PassChecker(ReferenceEvaluator* evaluator, StepInputs inputs, Bounds step,
              F16Compute f16_compute = F16Compute::kF32)
      : evaluator_(*evaluator),
        inputs_(std::move(inputs)),
        step_(step),
        f16_compute_(f16_compute) {}

  // For Compile: looks at the graph after a pass. Errors (a weight without
  // bytes, or with what is no number) are kept for status().
  void Look(const std::string& pass, int64_t bucket, const Graph& graph);

  absl::Status status() const { return status_; }
  const std::vector<PassCheck>& checks() const { return checks_; }
  // Null when no pass is at fault.
  const PassCheck* Guilty() const;

 private:
  absl::Status Check(const std::string& pass, int64_t bucket,
                     const Graph& graph);
  // Makes `graph` the one that the next is compared with.
  absl::Status Keep(Graph graph);

  ReferenceEvaluator& evaluator_;
  const StepInputs inputs_;
  const Bounds step_;
  const F16Compute f16_compute_;
  absl::Status status_;
  std::vector<PassCheck> checks_;
  // The graph before the next pass, and what its values hold.
  Graph before_;
  Contents contents_;
  int64_t bucket_ = 0;
  // The graph that all buckets begin with.
  Graph shared_;
};

}  // namespace weft
