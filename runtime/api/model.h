// From a model's file to its plan: what `run`, `dump` and `inspect` have in
// common. Takes no memory to speak of: weights stay in the mapped file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "loaders/architectures/architecture.h"
#include "loaders/gguf.h"
#include "runtime/plan/compile.h"
#include "runtime/plan/plan_file.h"

namespace weft {

struct ModelOptions {
  GraphOptions graph;
  CompileOptions compile;
  // Who only looks at a plan need not wait until the model file that it names
  // was read whole: it is told by its size and metadata then.
  bool reads_weights = true;
  // In place of the pre-tokeniser that a model file names; empty: that one.
  std::string pre;
  // Told, in one line, what was done in place of what was asked for.
  std::function<void(const std::string& warning)> warn = nullptr;
};

// A file, or the default model when the path is empty.
absl::StatusOr<GgufFile> OpenModel(const std::string& path);

// The plan of a GGUF file, with its vocabulary and metadata. With adapters
// (GraphOptions::adapters), or tensors that were changed (MergeAdapters), the
// plan names no source.
absl::StatusOr<Plan> CompileModel(const GgufFile& file,
                                  const ModelOptions& options,
                                  const PassObserver& observer = nullptr,
                                  const std::string& stop_after = "");

// Writes the plan with its weights (SavePlan), and a checksum of all tensor
// data of the model that it was compiled from.
absl::Status SaveModelPlan(Plan plan, const GgufFile& model,
                           const std::string& path, ThreadPool& threads,
                           const Progress& progress = nullptr);

// Writes a plan that holds no weights but names the GGUF file that it was
// compiled from, by the way from the plan's folder to it. Errors: those of
// SaveReference; the embedded model has no file; adapters, merged or beside the
// weights.
absl::Status SaveModelReference(const Plan& plan, const GgufFile& model,
                                const std::string& model_path,
                                const ModelOptions& options,
                                const std::string& path);

// Either kind: a GGUF file is compiled, a plan file (IsPlanFile) is loaded: its
// own options stand, whatever is given here. A plan file without weights is
// compiled again from its GGUF file, which must be where it was and as it was.
// So is one with weights that is for another CPU, with a warning, if its GGUF
// file lies beside it or in the current folder. Weights of a GGUF file are not
// made.
absl::StatusOr<Plan> LoadPlan(const std::string& path,
                              const ModelOptions& options);

// Of a plan that is compiled for several ranks, the file of one: model.weft
// becomes model.0.weft, and so on.
std::string PathOfRank(const std::string& path, int64_t rank);

// What compiles a plan's model again as it was compiled.
ModelOptions OptionsOf(const Plan& plan);

// An error unless the file has the tensors of the model that the plan was
// compiled from, without adapters; `plan_path` is for its message.
absl::Status CheckSource(const GgufFile& model, const Plan& plan,
                         const std::string& plan_path);

// All checksums of a plan file, those of the weights included; of a plan
// without weights, the ones of its model file.
absl::Status CheckPlanAndModel(const std::string& path);

}  // namespace weft
