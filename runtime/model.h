// From a model's file to its plan: what `run`, `dump` and `inspect` have in
// common. Takes no memory to speak of: weights stay in the mapped file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "loaders/architectures/architecture.h"
#include "loaders/gguf.h"
#include "runtime/compile.h"

namespace weft {

struct ModelOptions {
  GraphOptions graph;
  CompileOptions compile;
};

// A file, or the default model when the path is empty.
absl::StatusOr<GgufFile> OpenModel(const std::string& path);

// The plan of a GGUF file, with its vocabulary and metadata.
absl::StatusOr<Plan> CompileModel(const GgufFile& file,
                                  const ModelOptions& options,
                                  const PassObserver& observer = nullptr,
                                  const std::string& stop_after = "");

// Whether a path names a plan file (by its first bytes).
bool IsPlanFile(const std::string& path);

// Either kind: a GGUF file is compiled, a plan file is loaded (its own options
// stand). Weights are not made.
absl::StatusOr<Plan> LoadPlan(const std::string& path,
                              const ModelOptions& options);

}  // namespace weft
