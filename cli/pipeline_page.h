// What `weft dump --format html` writes: a graph, or the whole way to it, as
// one page (cli/html/page.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/listing.h"
#include "nlohmann/json.hpp"
#include "ops/kernels/kernel_table.h"
#include "runtime/api/model.h"

namespace weft {

struct PageOptions {
  // The model or text, a path; empty: the embedded model.
  std::string source;
  NodeFilter show;
  // Of the pipeline: a bucket that the plan has, and where to stop: after this
  // pass, or with the graph before it. Empty: at the end.
  int64_t bucket = 0;
  std::string stop_after, stop_before;
  nlohmann::json times;  // what AddTimes added; null: none were measured
};

// Adds what a page tells of a profile, the object that `weft profile --json`
// prints, as one list entry for each phase: {"label", "phase", "steps",
// "nodes": {name: [seconds of all steps, share of bandwidth, of arithmetic]}},
// shares null where there are none. `name` tells profiles apart. An error when
// `profile` is no such thing; no number of it is anything but shown.
absl::Status AddTimes(const nlohmann::json& profile, const std::string& name,
                      nlohmann::json* times);

// Of files, which stand side by side.
absl::StatusOr<nlohmann::json> ReadTimes(const std::vector<std::string>& files);

// One verified graph. With options, the kernels that they refuse are told.
std::string GraphPage(const Graph& graph,
                      const std::optional<KernelOptions>& kernels,
                      const PageOptions& page);

// Every graph of the pipeline, from the loader's on.
absl::StatusOr<std::string> PipelinePage(const GgufFile& file,
                                         const ModelOptions& options,
                                         const PageOptions& page);

// Of a plan.
KernelOptions KernelOptionsOf(const CompileOptions& options);

}  // namespace weft
