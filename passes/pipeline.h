// The pipeline: the passes in their order (pass_list.h), those of programs
// among them, and the loop that runs them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/registration.h"
#include "passes/pass.h"
#include "passes/pass_record.h"

namespace weft {

struct PassEntry {
  const char* name;
  PassFunction run;
  // Runs once for each token-count bucket, on that bucket's own graph.
  bool per_bucket;
  // How far the pass may move a result, relative to the root mean square of its
  // row. 0: it keeps float operations and their order, so no bit moves.
  // Infinity: it changes what the model computes, and is meant to.
  double tolerance = 0;
  // The same under --f16-compute bf16, where layouts round weights to bfloat16.
  double bf16_tolerance = 0;
};

// Thread-safe; valid until the next registration.
absl::Span<const PassEntry> Pipeline();

// Puts a pass behind the one named `after`, or first when that is empty. The
// name (a string literal) must live as long as the registration. Passes that
// run once stand before those that run for each bucket; behind choose-kernels,
// a node needs its attribute `kernel`, behind plan-buffers its place too.
// Errors: no name of lower-case letters, digits and hyphens, one that is taken,
// no function, no pass `after`, a place among passes of the other kind.
absl::StatusOr<Registration> RegisterPass(const PassEntry& pass,
                                          const std::string& after);

struct PipelineOptions {
  PassOptions passes;
  std::set<std::string> disabled;
  // Stops after this pass; empty: runs them all.
  std::string stop_after;
  // Called before the first pass (with an empty name) and after every one.
  std::function<void(const std::string& pass, const Graph& graph)> observe;
};

// An error names the pass that is not in the list.
absl::Status CheckPassName(const std::string& name);

// Runs the passes with this `per_bucket`, verifying the graph before the first
// and after each one. Appends to `records` if given. Sets `*stopped` when
// stop_after was reached.
absl::Status RunPasses(Graph& graph, bool per_bucket,
                       const PipelineOptions& options,
                       std::vector<PassRecord>* records, bool* stopped);

}  // namespace weft
