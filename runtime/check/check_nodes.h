// Whether a plan computes what its graph says: the plan is run, and each node's
// results are compared with those of its reference function on the operands
// that the kernel really had. Every operand is compared with what was written
// when its node ran, so a buffer that something else overwrote is found too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/kernels/kernel_table.h"
#include "runtime/check/reference_run.h"
#include "runtime/machine/thread_pool.h"
#include "runtime/plan/plan.h"

namespace weft {

// How far the node's results on this kernel may lie from the reference
// function's, given how they do: KernelEntry::tolerance, and more where the
// node rounds inside.
double ToleranceOf(const Node& node, const KernelEntry& entry,
                   const Difference& difference);

// A node at fault.
struct NodeFault {
  int64_t bucket = 0;
  std::string node;  // its name
  std::string op;
  std::string kernel;
  std::string fault;  // what is wrong, for people
};

struct NodeCheck {
  int64_t bucket = 0;
  int steps = 0;     // that were run in this bucket's graph
  int nodes = 0;     // that were compared, all steps together
  double worst = 0;  // largest difference, as a share of the kernel's tolerance
  std::string worst_node, worst_kernel;
  // The first whose results are not all numbers, which its reference gives,
  // too: the fault is in the model. Empty: none.
  std::string nan_node;
};

struct NodeReport {
  std::vector<NodeCheck> checks;  // by bucket
  std::vector<NodeFault> faults;  // in order of running; at most one per node
};

// Runs `tokens` in every bucket's graph, as one sequence and in at most two
// steps, the second of which reads states that the first wrote. Weights must
// have been made. Allocates copies of what nodes read and write. Errors: tokens
// beyond the vocabulary or the context, no memory.
absl::StatusOr<NodeReport> CheckNodes(const Plan& plan,
                                      absl::Span<const int32_t> tokens,
                                      ThreadPool& threads,
                                      ReferenceEvaluator* evaluator);

}  // namespace weft
