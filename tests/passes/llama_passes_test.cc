// The passes on whole models: what the loader writes, and what is left of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "graph/text_format.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "runtime/api/model.h"

namespace weft {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kSmallModel[] = "tests/data/malformed/00-valid.gguf";

using Counts = std::map<std::string, int>;

Counts CountOps(const Graph& graph) {
  Counts counts;
  for (NodeId id : graph.order()) ++counts[graph.node(id).op->name];
  return counts;
}

struct Compiled {
  Graph first;  // as the loader wrote it
  Plan plan;
};

Compiled CompileFile(const std::string& path,
                     const std::set<std::string>& disabled = {}) {
  absl::StatusOr<GgufFile> file = OpenModel(path);
  EXPECT_TRUE(file.ok()) << file.status();
  ModelOptions options;
  options.compile.isa = DetectIsa();
  options.compile.disabled_passes = disabled;
  options.compile.planner = PlanStrategy::kBySize;
  Compiled result;
  absl::StatusOr<Plan> plan =
      CompileModel(*file, options,
                   [&](const std::string& pass, int64_t, const Graph& graph) {
                     if (pass.empty()) result.first = graph.Compact();
                   });
  EXPECT_TRUE(plan.ok()) << plan.status();
  result.plan = *std::move(plan);
  return result;
}

int BlockCount(const Plan& plan) {
  for (const auto& [name, values] : plan.model.hyper_parameters) {
    if (name == "block_count") return static_cast<int>(values[0]);
  }
  ADD_FAILURE() << "no block_count";
  return 0;
}

TEST(LlamaPasses, FirstGraphIsMadeOfPrimitives) {
  for (const char* path : {"", kSmallModel}) {
    const Graph graph = CompileFile(path).first;
    EXPECT_GT(graph.order().size(), 20u);
    for (const auto& [op, count] : CountOps(graph)) {
      ASSERT_NE(FindOp(op), nullptr);
      EXPECT_TRUE(FindOp(op)->primitive) << op;
    }
    // And reads back.
    absl::StatusOr<Graph> parsed = ParseGraph(Dump(graph));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(Dump(*parsed), Dump(graph));
    EXPECT_TRUE(VerifyGraph(*parsed).ok());
  }
}

TEST(LlamaPasses, FirstGraphIsTheTextbook) {
  const Compiled model = CompileFile("");
  const int blocks = BlockCount(model.plan);
  EXPECT_THAT(
      CountOps(model.first),
      UnorderedElementsAre(
          Pair("embed", 1), Pair("rms_norm", 2 * blocks + 1),
          Pair("matmul", 7 * blocks + 1), Pair("rope", 2 * blocks),
          Pair("kv_write", 2 * blocks), Pair("attention_scores", blocks),
          Pair("softmax", blocks), Pair("attention_values", blocks),
          Pair("silu", blocks), Pair("mul", blocks), Pair("add", 2 * blocks),
          Pair("take_rows", 1)));
}

TEST(LlamaPasses, EveryFusionOfTheDefaultModelHappens) {
  const Compiled model = CompileFile("");
  const int blocks = BlockCount(model.plan);
  for (const Graph& graph : model.plan.buckets) {
    // In each block: norm and Q, K, V as one product; their slices; the query
    // rotated; keys rotated and written; values written; attention; its output
    // rounded and multiplied, with the residual; norm, gate and up as one
    // product with rounded results; down, with the residual. Then the wanted
    // rows, and norm and output as one product.
    EXPECT_THAT(CountOps(graph),
                UnorderedElementsAre(
                    Pair("embed", 1), Pair("fused_matmul", 4 * blocks + 1),
                    Pair("slice", 3 * blocks), Pair("rope", blocks),
                    Pair("rope_kv_write", blocks), Pair("kv_write", blocks),
                    Pair("attention", blocks), Pair("quantize_rows", blocks),
                    Pair("take_rows", 1)))
        << Dump(graph);
  }
}

// Weights of the default model are Q8_0 throughout; each is packed once, and
// the table of the embedding is the output weight too where the file ties them.
TEST(LlamaPasses, WeightsOfTheDefaultModelAreLaidOutOnce) {
  if (FindKernel("attention_f16_64_avx2") == nullptr) {
    GTEST_SKIP() << "kernels of another processor";
  }
  const Compiled model = CompileFile("");
  for (const Graph& graph : model.plan.buckets) {
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (!node.Is(kFusedMatmulOp)) continue;
      EXPECT_EQ(graph.value(node.inputs[1]).type.layout, "panel16")
          << node.name;
    }
  }
}

TEST(LlamaPasses, SwitchedOffPassesLeaveTheirOps) {
  const std::pair<const char*, const char*> left[] = {
      {"fuse-attention", "attention_scores"},
      {"fuse-silu-gate", "mul"},
      {"fuse-rmsnorm-matmul", "rms_norm"},
      {"fuse-residual", "add"},
  };
  for (const auto& [pass, op] : left) {
    const Compiled model = CompileFile("", {pass});
    EXPECT_GT(CountOps(model.plan.buckets[0])[op], 0) << pass;
  }
  EXPECT_EQ(
      CountOps(CompileFile("", {"fuse-qkv"}).plan.buckets[0]).count("slice"),
      0u);
  const Compiled plain = CompileFile("", {"quantize-activations"});
  EXPECT_EQ(CountOps(plain.plan.buckets[0]).count("quantize_rows"), 0u);
}

}  // namespace
}  // namespace weft
