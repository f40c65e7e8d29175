// What every pass keeps: the results of the graph before it, bit for bit, when
// both are run with the reference functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "tests/ops/reference_run.h"
#include "tests/passes/random_models.h"

namespace weft {
namespace {

struct Results {
  std::map<std::string, std::vector<float>> outputs;
  std::map<std::string, std::vector<uint8_t>> states;
};

// One step of a few tokens, of which some rows are wanted. Its size is the
// graph's.
Results RunReference(const Graph& graph, int64_t vocabulary, uint32_t seed) {
  std::mt19937 random(seed);
  const int64_t tokens = graph.bounds.tokens;
  // Some steps go over the end of a page.
  const int32_t start = seed % 4 == 0 ? 62 : 0;
  std::vector<int32_t> ids, positions, rows;
  for (int64_t t = 0; t < tokens; ++t) {
    ids.push_back(random() % vocabulary);
    positions.push_back(start + t);
  }
  for (int64_t r = 0; r < graph.bounds.rows; ++r) {
    rows.push_back(random() % tokens);
  }
  ReferenceRun run(graph);
  run.Set("ids", ids);
  run.Set("positions", positions);
  run.Set("sequence", std::vector<int32_t>(tokens, 0));
  run.Set("output_rows", rows);
  Results results;
  results.outputs = run.Run();
  results.states = run.States();
  return results;
}

// What the pass changed, "" when nothing. With a tolerance, logits alone
// count.
std::string Difference(const Results& before, const Results& after,
                       double tolerance) {
  if (tolerance > 0) {
    const double error =
        RelativeError(after.outputs.at("logits"), before.outputs.at("logits"));
    return error <= tolerance ? "" : absl::StrCat("logits by ", error);
  }
  for (const auto& [name, want] : before.outputs) {
    const std::vector<float>& found = after.outputs.at(name);
    if (found.size() != want.size() ||
        std::memcmp(found.data(), want.data(), want.size() * 4) != 0) {
      return absl::StrCat("output ", name, " by ", RelativeError(found, want));
    }
  }
  for (const auto& [name, want] : before.states) {
    if (after.states.at(name) != want) return absl::StrCat("state ", name);
  }
  return "";
}

Graph FewTokens(const RandomModel& model, uint32_t seed) {
  Graph graph = model.graph;
  graph.bounds.tokens = 1 + seed % 5;
  graph.bounds.rows = 1 + seed % 3;
  return graph;
}

PassOptions Options() {
  PassOptions options;
  options.kernels.isa = DetectIsa();
  options.planner = PlanStrategy::kBySize;
  return options;
}

TEST(PassResults, EveryPassKeepsThemOnItsOwn) {
  std::map<std::string, int> changed;
  ForRandomModels(
      300,
      [&](uint32_t seed, const RandomModel& model) {
        Graph graph = FewTokens(model, seed);
        Results before = RunReference(graph, model.vocabulary, seed);
        std::vector<PassEntry> passes(Pipeline().begin(), Pipeline().end());
        if (seed % 3 == 0) {
          std::shuffle(passes.begin(), passes.end(), std::mt19937(seed));
        }
        for (const PassEntry& pass : passes) {
          const std::string text = Dump(graph);
          const absl::Status ran = RunPass(pass.run, Options(), &graph);
          ASSERT_TRUE(ran.ok()) << pass.name << ": " << ran;
          if (Dump(graph) == text) continue;
          ++changed[pass.name];
          Results after = RunReference(graph, model.vocabulary, seed);
          ASSERT_EQ(
              Difference(before, after,
                         pass.tolerance == 0 ? 0 : LogitsTolerance(model)),
              "")
              << pass.name << "\n"
              << text << "became\n"
              << Dump(graph);
          before = std::move(after);
        }
      },
      true);
  for (const PassEntry& pass : Pipeline()) {
    // Random models have no recurrent blocks: tests/golden/recurrent_test has
    // these passes on and off. Nor have they adapters (adapters_test there), or
    // other ranks (shards_test there).
    const absl::string_view name = pass.name;
    if (name == "fuse-conv-silu" || name == "fuse-norm-gate" ||
        name == "add-adapters" || name == "shard") {
      continue;
    }
    EXPECT_GE(changed[pass.name], 10) << pass.name << " hardly did anything";
    RecordProperty(pass.name, changed[pass.name]);
  }
}

// --- The property can fail: passes that are wrong the way passes are.

absl::Status ExchangeGateAndUp(Graph& graph, const PassOptions&) {
  ValueId gated, up;
  const Pattern gate =
      EitherOrder(Op(kMulOp, {Once(Op(kSiluOp, {Any(&gated)})), Rows(&up)}));
  ForEachMatch(graph, gate, [&](NodeId mul) {
    graph.node(mul).Become(kSiluGateOp);
    graph.node(mul).inputs = {up, gated};
  });
  return absl::OkStatus();
}

absl::Status ForgetEps(Graph& graph, const PassOptions&) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).Is(kRmsNormOp)) {
      auto norm = graph.node(id).attributes.As<NormAttributes>();
      norm.eps = 1e-30;
      graph.node(id).attributes = norm;
    }
  }
  return absl::OkStatus();
}

absl::Status LoseTheResidual(Graph& graph, const PassOptions&) {
  ValueId residual;
  NodeId product;
  const Pattern sum = EitherOrder(
      Op(kAddOp, {Once(Op(kMatmulOp, {}, &product)), Rows(&residual)}));
  ForEachMatch(graph, sum, [&](NodeId add) {
    graph.ReplaceUses(graph.node(add).outputs[0],
                      graph.node(product).outputs[0]);
  });
  return absl::OkStatus();
}

absl::Status SliceBesideTheMark(Graph& graph, const PassOptions&) {
  for (NodeId id : graph.order()) {
    if (!graph.node(id).Is(kSliceOp)) continue;
    auto slice = graph.node(id).attributes.As<SliceAttributes>();
    if (slice.begin > 0) --slice.begin;
    graph.node(id).attributes = slice;
  }
  return absl::OkStatus();
}

// As fuse-rope-kv-write would without looking who else rotates what.
absl::Status WriteKeysUnrotated(Graph& graph, const PassOptions&) {
  ValueId pages, keys;
  const Pattern write =
      Op(kKvWriteOp, {Any(&pages), Op(kRopeOp, {Any(&keys)})});
  ForEachMatch(graph, write,
               [&](NodeId id) { graph.node(id).inputs[1] = keys; });
  return absl::OkStatus();
}

// The last bit of one weight: what a wrong repacking might do.
absl::Status FlipABit(Graph& graph, const PassOptions&) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    Value& value = graph.value(id);
    if (value.type.dtype != DType::kF32 || value.data.bytes.empty()) continue;
    auto bytes = std::make_shared<std::vector<uint8_t>>(
        value.data.bytes.begin(), value.data.bytes.end());
    for (size_t i = 2; i < bytes->size(); i += 4) (*bytes)[i] ^= 1;
    value.data.bytes = *bytes;
    value.data.owner = bytes;
  }
  return absl::OkStatus();
}

TEST(PassResults, WrongPassesAreFound) {
  const struct {
    const char* name;
    PassFunction pass;
  } faults[] = {
      {"gate and up exchanged", ExchangeGateAndUp},
      {"eps forgotten", ForgetEps},
      {"residual lost", LoseTheResidual},
      {"slice one column off", SliceBesideTheMark},
      {"keys not rotated", WriteKeysUnrotated},
      {"weights changed", FlipABit},
  };
  for (const auto& fault : faults) {
    int changed = 0, found = 0;
    ForRandomModels(100, [&](uint32_t seed, const RandomModel& model) {
      Graph graph = FewTokens(model, seed);
      DeadCode(graph, Options()).IgnoreError();
      const std::string text = Dump(graph);
      const Results before = RunReference(graph, model.vocabulary, seed);
      const absl::Status ran = RunPass(fault.pass, Options(), &graph);
      ASSERT_TRUE(ran.ok()) << fault.name << ": " << ran;
      if (fault.pass != FlipABit && Dump(graph) == text) return;
      ++changed;
      const Results after = RunReference(graph, model.vocabulary, seed);
      found += !Difference(before, after, 0).empty();
    });
    EXPECT_GT(changed, 10) << fault.name;
    // What is wrong may be rounded away, or not matter for one token.
    EXPECT_GT(found, changed / 2)
        << fault.name << ": " << found << " of " << changed;
  }
}

}  // namespace
}  // namespace weft
