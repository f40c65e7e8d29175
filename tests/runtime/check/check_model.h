// The embedded model, as checks want it.
#pragma once

#include <vector>

#include "gtest/gtest.h"
#include "runtime/api/engine.h"
#include "runtime/check/check_passes.h"

namespace weft {

inline std::vector<int32_t> SomeTokens(int count) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(3 + 37 * i % 200);
  return tokens;
}

// A small context: the checks copy states.
inline ModelOptions CheckOptions(std::vector<int64_t> buckets) {
  ModelOptions options = DefaultModelOptions();
  options.compile.buckets = std::move(buckets);
  options.graph.context = 64;
  return options;
}

inline absl::StatusOr<Plan> CompileDefault(const ModelOptions& options,
                                           const PassObserver& look = nullptr) {
  absl::StatusOr<GgufFile> file = OpenModel("");
  if (!file.ok()) return file.status();
  return CompileModel(*file, options, look);
}

}  // namespace weft
