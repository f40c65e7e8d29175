// What passes must do with every legal graph, whatever it computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "tests/passes/elementwise_ops.h"
#include "tests/passes/random_models.h"

namespace weft {
namespace {

PassOptions Options(Isa isa) {
  PassOptions options;
  options.kernels.isa = isa;
  // Nothing here depends on how good a plan is, and the search takes time.
  options.planner = PlanStrategy::kBySize;
  return options;
}

// What occurs in the graphs of these many seeds.
std::set<std::string> OpsOfSeeds(uint32_t seeds) {
  std::set<std::string> ops;
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    const Graph graph = MakeRandomModel(seed).graph;
    for (NodeId id : graph.order()) ops.insert(graph.node(id).op->name);
  }
  return ops;
}

TEST(RandomGraph, HasEveryElementwiseOpOfTheTable) {
  const std::set<std::string> ops = OpsOfSeeds(200);
  std::set<std::string> elementwise;
  for (const ElementwiseOp& found : ElementwiseOps()) {
    elementwise.insert(found.op->name);
    EXPECT_EQ(ops.count(found.op->name), 1) << found.op->name;
  }
  for (const char* op :
       {"add", "mul", "scale", "softcap", "silu", "sigmoid", "gelu"}) {
    EXPECT_EQ(elementwise.count(op), 1) << op;
  }
  EXPECT_EQ(elementwise.count("slice"), 0);
}

TEST(RandomGraph, HasAnOpThatJustCame) {
  static const OpDef twin = [] {
    OpDef op = kScaleOp;
    op.name = "twin";
    return op;
  }();
  EXPECT_EQ(OpsOfSeeds(200).count("twin"), 0);
  const absl::StatusOr<Registration> registered = RegisterOp(&twin);
  ASSERT_TRUE(registered.ok()) << registered.status();
  EXPECT_EQ(OpsOfSeeds(200).count("twin"), 1);
}

TEST(RandomGraph, TextFormReadsBack) {
  ForRandomModels(
      1000,
      [](uint32_t, const RandomModel& model) {
        const std::string text = Dump(model.graph);
        absl::StatusOr<Graph> parsed = ParseGraph(text);
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        EXPECT_EQ(Dump(*parsed), text);
        EXPECT_TRUE(VerifyGraph(*parsed).ok());
        const Graph compact = model.graph.Compact();
        EXPECT_EQ(Dump(compact.Compact()), Dump(compact));
      },
      true);
}

TEST(RandomGraph, PassesLeaveLegalGraphsAndHaveNothingToDoTwice) {
  ForRandomModels(
      1200,
      [](uint32_t seed, const RandomModel& model) {
        Graph graph = model.graph;
        const PassOptions options =
            Options(seed % 3 == 0 ? kLeastIsa : DetectIsa());
        std::mt19937 random(seed);
        for (const PassEntry& pass : Pipeline()) {
          // Whichever passes ran before.
          if (random() % 5 == 0) continue;
          const absl::Status ran = RunPassTwice(pass.run, options, &graph);
          ASSERT_TRUE(ran.ok()) << pass.name << ": " << ran;
        }
      },
      true);
}

// Also for graphs without weight bytes.
TEST(RandomGraph, AnyOrderOfPassesLeavesLegalGraphs) {
  ForRandomModels(
      1200,
      [](uint32_t seed, const RandomModel& model) {
        Graph graph = model.graph;
        if (seed % 2 == 0) graph = ParseGraph(Dump(graph)).value();
        std::vector<PassEntry> passes(Pipeline().begin(), Pipeline().end());
        std::shuffle(passes.begin(), passes.end(), std::mt19937(seed));
        for (const PassEntry& pass : passes) {
          const absl::Status ran =
              RunPass(pass.run, Options(DetectIsa()), &graph);
          ASSERT_TRUE(ran.ok()) << pass.name << ": " << ran;
        }
      },
      true);
}

// --- The properties can fail.

// A silu in front of every product, of the product's own width.
absl::Status WriteWrongTypes(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (!graph.node(id).Is(kMatmulOp)) continue;
    const NodeId silu =
        graph.AddNode(Node(kSiluOp, {graph.node(id).inputs[0]}, {}, "wrong"),
                      {graph.value(graph.node(id).outputs[0]).type}, id);
    graph.node(id).inputs[0] = graph.node(silu).outputs[0];
  }
  return absl::OkStatus();
}

absl::Status WriteBeforeItIsMade(Graph& graph, const PassOptions&) {
  std::vector<NodeId> order = graph.order();
  std::swap(order.front(), order.back());
  graph.SetOrder(order);
  return absl::OkStatus();
}

absl::Status ExchangeOperandsOfAdd(Graph& graph, const PassOptions&) {
  for (NodeId id : graph.order()) {
    Node& add = graph.node(id);
    if (add.Is(kAddOp) &&
        graph.value(add.inputs[0]).type == graph.value(add.inputs[1]).type) {
      std::swap(add.inputs[0], add.inputs[1]);
    }
  }
  return absl::OkStatus();
}

TEST(RandomGraph, WrongPassesAreFound) {
  int models = 0, wrong_types = 0, not_made = 0, restless = 0;
  ForRandomModels(100, [&](uint32_t, const RandomModel& model) {
    const PassOptions options = Options(Isa::kRef);
    ++models;
    Graph graph = model.graph;
    wrong_types += !RunPass(WriteWrongTypes, options, &graph).ok();
    graph = model.graph;
    not_made += !RunPass(WriteBeforeItIsMade, options, &graph).ok();
    graph = model.graph;
    EXPECT_TRUE(RunPass(ExchangeOperandsOfAdd, options, &graph).ok());
    graph = model.graph;
    restless += !RunPassTwice(ExchangeOperandsOfAdd, options, &graph).ok();
  });
  // Some models have no such place.
  EXPECT_GT(wrong_types, models / 2);
  EXPECT_GT(not_made, models * 9 / 10);
  EXPECT_GT(restless, models * 3 / 10);
}

}  // namespace
}  // namespace weft
