#include "runtime/check/check_passes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "ops/fused_matmul.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "tests/runtime/check/check_model.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Compiles the embedded model, looking at every pass.
std::vector<PassCheck> CheckAll(const ModelOptions& options) {
  ReferenceEvaluator evaluator;
  constexpr int kTokens = 5;
  PassChecker checker(&evaluator, TokenInputs(SomeTokens(kTokens), 0),
                      {kTokens, kTokens, kPageTokens});
  const absl::StatusOr<Plan> plan = CompileDefault(
      options, [&](const std::string& pass, int64_t bucket,
                   const Graph& graph) { checker.Look(pass, bucket, graph); });
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(checker.status().ok()) << checker.status();
  return checker.checks();
}

// The first check with a fault, which must be there, with this pass planted
// behind `after`.
PassCheck GuiltyWith(PassFunction function, const std::string& after,
                     bool per_bucket = false, double tolerance = 0) {
  absl::StatusOr<Registration> planted =
      RegisterPass({"planted", function, per_bucket, tolerance}, after);
  EXPECT_TRUE(planted.ok()) << planted.status();
  for (const PassCheck& check : CheckAll(CheckOptions({1, 8}))) {
    if (!check.fault.empty()) return check;
  }
  ADD_FAILURE() << "no pass is at fault";
  return {};
}

Node* FindNode(Graph& graph, const std::string& op, const std::string& name) {
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (op == node.op->name && node.name == name) return &node;
  }
  ADD_FAILURE() << "no node " << op << " " << name;
  return nullptr;
}

TEST(CheckPasses, EveryPassKeepsWhatTheModelComputes) {
  const std::vector<PassCheck> checks = CheckAll(CheckOptions({1, 8}));
  // Those that run once, and the others for each of two buckets.
  EXPECT_EQ(checks.size(), Pipeline().size() + 3);
  for (const PassCheck& check : checks) {
    EXPECT_THAT(check.fault, IsEmpty()) << check.pass;
    // Rounding activations moves results, and only that and the attention.
    if (check.pass == "quantize-activations") {
      EXPECT_GT(check.worst, 1e-3);
    } else {
      EXPECT_LT(check.worst, 1e-5) << check.pass;
    }
  }
}

TEST(CheckPasses, SoDoThoseThatAreLeftWhenSomeAreSwitchedOff) {
  ModelOptions options = CheckOptions({8});
  options.compile.disabled_passes = {"quantize-activations", "fuse-silu-gate",
                                     "pack-weights"};
  for (const PassCheck& check : CheckAll(options)) {
    EXPECT_THAT(check.fault, IsEmpty()) << check.pass;
  }
}

TEST(CheckPasses, AWrongFusionIsFoundWithItsNode) {
  // Up where gate should be.
  const PassCheck guilty = GuiltyWith(
      [](Graph& graph, const PassOptions&) {
        for (NodeId id : graph.order()) {
          Node& node = graph.node(id);
          if (node.Is(kInterleaveRowsOp) && node.name == "blk.2.ffn_up_gate") {
            std::swap(node.inputs[0], node.inputs[1]);
          }
        }
        return absl::OkStatus();
      },
      "fuse-silu-gate");
  EXPECT_EQ(guilty.pass, "planted");
  EXPECT_EQ(guilty.bucket, 0);
  EXPECT_EQ(guilty.node, "blk.2.ffn_up_gate");
  EXPECT_THAT(guilty.fault, HasSubstr("row "));
}

TEST(CheckPasses, ALittleMoreEpsilonIsFound) {
  const PassCheck guilty = GuiltyWith(
      [](Graph& graph, const PassOptions&) {
        Node* norm = FindNode(graph, "rms_norm", "blk.1.ffn_norm");
        if (norm != nullptr) {
          auto fields = norm->attributes.As<NormAttributes>();
          fields.eps *= 1.1;
          norm->attributes = fields;
        }
        return absl::OkStatus();
      },
      "dead-code");
  EXPECT_EQ(guilty.pass, "planted");
  EXPECT_EQ(guilty.node, "blk.1.ffn_norm");
}

TEST(CheckPasses, AResidualThatIsDroppedIsFound) {
  const PassCheck guilty = GuiltyWith(
      [](Graph& graph, const PassOptions&) {
        const std::vector<NodeId> order = graph.order();
        for (NodeId id : order) {
          if (!graph.node(id).Is(kAddOp)) continue;
          graph.ReplaceUses(graph.node(id).outputs[0],
                            graph.node(id).inputs[0]);
          break;
        }
        graph.EraseDead();
        return absl::OkStatus();
      },
      "dead-code");
  EXPECT_EQ(guilty.pass, "planted");
}

TEST(CheckPasses, WhatGoesIntoTheCacheIsCompared) {
  const PassCheck guilty = GuiltyWith(
      [](Graph& graph, const PassOptions&) {
        for (NodeId id : graph.order()) {
          Node& node = graph.node(id);
          if (node.Is(kRopeKvWriteOp) && node.name == "blk.3.keys") {
            auto rope = node.attributes.As<RopeAttributes>();
            rope.base = 5000.0;
            node.attributes = rope;
          }
        }
        return absl::OkStatus();
      },
      "fuse-rope-kv-write");
  EXPECT_EQ(guilty.pass, "planted");
  EXPECT_EQ(guilty.node, "blk.3.keys");
}

TEST(CheckPasses, APassOfOneBucketIsFoundThere) {
  const PassCheck guilty = GuiltyWith(
      [](Graph& graph, const PassOptions&) {
        for (NodeId id : graph.order()) {
          Node& node = graph.node(id);
          if (graph.bounds.tokens == 8 && node.Is(kAttentionOp)) {
            auto fields = node.attributes.As<AttentionAttributes>();
            fields.scale = 0.1;
            node.attributes = fields;
          }
        }
        return absl::OkStatus();
      },
      "choose-kernels", true);
  EXPECT_EQ(guilty.pass, "planted");
  EXPECT_EQ(guilty.bucket, 8);
  EXPECT_EQ(guilty.node, "blk.0.attention");
}

TEST(CheckPasses, AToleranceForgivesThatMuch) {
  const PassFunction little = [](Graph& graph, const PassOptions&) {
    Node* norm = FindNode(graph, "rms_norm", "blk.1.ffn_norm");
    if (norm != nullptr) {
      auto fields = norm->attributes.As<NormAttributes>();
      fields.eps *= 1.1;
      norm->attributes = fields;
    }
    return absl::OkStatus();
  };
  absl::StatusOr<Registration> planted =
      RegisterPass({"planted", little, false, 1e-3}, "dead-code");
  ASSERT_TRUE(planted.ok()) << planted.status();
  for (const PassCheck& check : CheckAll(CheckOptions({8}))) {
    EXPECT_THAT(check.fault, IsEmpty()) << check.pass;
    if (check.pass == "planted") {
      EXPECT_GT(check.worst, 0);
    }
  }
}

TEST(CheckPasses, WeightsWithoutBytesAreAnError) {
  ReferenceEvaluator evaluator;
  PassChecker checker(&evaluator, TokenInputs(SomeTokens(2), 0),
                      {2, 2, kPageTokens});
  absl::StatusOr<Plan> plan = CompileDefault(CheckOptions({8}));
  ASSERT_TRUE(plan.ok());
  Graph graph = plan->buckets[0];
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    graph.value(id).data = WeightData();
  }
  checker.Look("", 0, graph);
  EXPECT_THAT(std::string(checker.status().message()),
              HasSubstr("has no bytes"));
}

// No pass is to blame for them.
TEST(CheckPasses, WeightsThatAreNoNumbersAreNamed) {
  Graph graph;
  ASSERT_TRUE(
      CompileDefault(CheckOptions({8}), [&](const std::string& pass, int64_t,
                                            const Graph& seen) {
        if (pass.empty()) graph = seen;
      }).ok());
  const std::string kBroken = "blk.1.ffn_norm";
  const ValueId id = graph.FindValue(kBroken);
  ASSERT_NE(id, kNone);
  const auto bytes =
      std::make_shared<std::vector<uint8_t>>(graph.value(id).data.bytes.size());
  const uint8_t nan[] = {0, 0, 0xc0, 0x7f};
  std::copy(nan, nan + 4, bytes->begin() + 12);
  graph.value(id).data.bytes = *bytes;
  graph.value(id).data.owner = bytes;
  ReferenceEvaluator evaluator;
  PassChecker checker(&evaluator, TokenInputs(SomeTokens(2), 0),
                      {2, 2, kPageTokens});
  checker.Look("", 0, graph);
  EXPECT_THAT(std::string(checker.status().message()),
              HasSubstr("weights are no numbers: " + kBroken +
                        ": row 0 column 3 is nan: "));
  EXPECT_THAT(checker.checks(), IsEmpty());
}

}  // namespace
}  // namespace weft
