// What `weft dump --format html` writes: a graph, or the whole way to it, as
// one page (cli/html/page.h).
#pragma once

#include <optional>
#include <string>

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
  nlohmann::json times;  // as TimesOf gives them; null: none were measured
};

// What a page tells of `weft profile --json`: for each phase {"label", "steps",
// "nodes": {name: seconds of all steps}}. An error when `profile` is no such
// thing; no number of it is anything but shown.
absl::StatusOr<nlohmann::json> TimesOf(const std::string& profile);

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
