// Properties of passes, tried on many random models.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/pass.h"
#include "tests/passes/random_graph.h"
#include "tests/passes/random_weights.h"

namespace weft {

// Calls `check` with the seeds 0, 1, ... and the models they give, with
// weights: `count` times, or as many times more as WEFT_RANDOM_MODELS says. The
// first that fails ends the test with its seed and graph.
inline void ForRandomModels(
    int count, const std::function<void(uint32_t, const RandomModel&)>& check,
    bool more_outputs = false) {
  if (const char* more = std::getenv("WEFT_RANDOM_MODELS")) {
    count *= std::atoi(more);
  }
  ASSERT_GT(count, 0);
  for (int seed = 0; seed < count; ++seed) {
    RandomModel model = MakeRandomModel(seed, more_outputs);
    FillWeights(&model.graph, seed);
    check(seed, model);
    if (::testing::Test::HasFailure()) {
      FAIL() << "seed " << seed << "\n" << Dump(model.graph);
    }
  }
  ::testing::Test::RecordProperty("models", count);
}

// Root mean square of the difference, against that of b. Requires equal sizes.
inline double RelativeError(const std::vector<float>& a,
                            const std::vector<float>& b) {
  double error = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
    size += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(error / (size + 1e-30));
}

// How far logits may move when a rounding in the middle of the model does:
// where numbers are rounded to 8 bits, some then go the other way. A router
// whose best experts are near each other may choose another one: then there is
// no bound.
inline double LogitsTolerance(const RandomModel& model) {
  for (const NodeId id : model.graph.order()) {
    if (model.graph.node(id).Is(kTopKOp)) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return model.quantized ? 0.1 : 1e-4;
}

// Runs a pass, and the verifier after it. An error says what the pass made of
// what.
inline absl::Status RunPass(PassFunction pass, const PassOptions& options,
                            Graph* graph) {
  const Graph before = *graph;
  absl::Status status = pass(*graph, options);
  if (status.ok()) status = VerifyGraph(*graph);
  if (status.ok()) return status;
  return absl::InternalError(absl::StrCat(status.message(), "\n", Dump(before),
                                          "became\n", Dump(*graph)));
}

// The same; and a second run must find nothing to do.
inline absl::Status RunPassTwice(PassFunction pass, const PassOptions& options,
                                 Graph* graph) {
  absl::Status status = RunPass(pass, options, graph);
  const std::string once = Dump(graph->Compact());
  if (status.ok()) status = RunPass(pass, options, graph);
  if (!status.ok()) return status;
  const std::string twice = Dump(graph->Compact());
  if (once == twice) return status;
  return absl::InternalError(
      absl::StrCat("a second run changed\n", once, "to\n", twice));
}

}  // namespace weft
