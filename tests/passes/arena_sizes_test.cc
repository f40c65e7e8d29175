// The plans of real models: published shapes, with holes in place of weights
// (passes read none). Their arenas are as small as can be, and experts run as
// two products: gate and up in one, which ends in the gate, and down. Prints
// the table that it checks.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "loaders/synthesize.h"
#include "ops/attributes.h"
#include "runtime/api/model.h"

namespace weft {
namespace {

struct Case {
  const char* shape;
  const char* type;
};

// Expert products of a block with a router: two.
void ExpectFusedExperts(const Graph& graph) {
  int routers = 0, products = 0, gates = 0;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const std::string op = node.op->name;
    routers += op == "top_k";
    products += op == "expert_matmul" || op == "fused_expert_matmul";
    if (op != "fused_expert_matmul") continue;
    gates += node.attributes.As<FusedExpertMatmulAttributes>().epilogue >=
             FusedEpilogue::kSiluGate;
  }
  EXPECT_EQ(products, 2 * routers);
  EXPECT_GE(gates, routers);
}

class ArenaSizes : public ::testing::TestWithParam<Case> {};

TEST_P(ArenaSizes, AreWithinTwoPercentOfTheLowerBound) {
  SynthesizeOptions synthesize;
  synthesize.shape = GetParam().shape;
  synthesize.type = GetParam().type;
  synthesize.hollow = true;
  const std::string path = ::testing::TempDir() + "/hollow.gguf";
  const auto report = SynthesizeModel(synthesize, path);
  ASSERT_TRUE(report.ok()) << report.status();
  absl::StatusOr<GgufFile> file = OpenModel(path);
  ASSERT_TRUE(file.ok()) << file.status();

  std::printf(
      "%-15s %-6s isa         tokens      arena      bound   ratio  "
      "          sum\n",
      "", "");
  for (const Isa isa : {Isa::kRef, Isa::kAvx2, Isa::kAvx512Vnni}) {
    if (!Includes(DetectIsa(), isa)) continue;
    ModelOptions options;
    options.compile.isa = isa;
    options.compile.buckets = {1, 8, 64, 256, 512};
    const absl::StatusOr<Plan> plan = CompileModel(*file, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Graph& graph : plan->buckets) {
      ExpectFusedExperts(graph);
      const ArenaPlan& arena = graph.arena;
      const double ratio = static_cast<double>(arena.bytes) /
                           static_cast<double>(arena.lower_bound);
      std::printf("%-15s %-6s %-10s  %6d %10lld %10lld  %.4f  %12lld\n",
                  GetParam().shape, GetParam().type, Name(isa),
                  static_cast<int>(graph.bounds.tokens),
                  static_cast<long long>(arena.bytes),
                  static_cast<long long>(arena.lower_bound), ratio,
                  static_cast<long long>(arena.sum_of_intermediates));
      ASSERT_GT(arena.lower_bound, 0);
      EXPECT_GE(arena.bytes, arena.lower_bound);
      EXPECT_LE(ratio, 1.02);
      // Of float weights, normed rows and the gate are floats: 9.5 MiB.
      if (std::string(GetParam().shape) == "tinyllama-1.1b" &&
          graph.bounds.tokens == 256 && GetParam().type[0] == 'Q') {
        EXPECT_LE(arena.bytes, 9 << 20);
      }
    }
  }
  std::remove(path.c_str());
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.shape) + "_" + info.param.type;
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ArenaSizes,
    ::testing::Values(
        Case{"tinyllama-1.1b", "Q4_0"}, Case{"tinyllama-1.1b", "Q4_K_M"},
        Case{"tinyllama-1.1b", "F16"}, Case{"llama-3.2-1b", "Q4_0"},
        Case{"llama-3-8b", "Q4_0"}, Case{"qwen2-0.5b", "Q4_0"},
        Case{"smollm-135m", "Q4_0"}, Case{"smollm-135m", "F32"},
        Case{"qwen3-0.6b", "Q4_K_M"}, Case{"gpt2-124m", "Q8_0"},
        Case{"stablelm-2-1.6b", "Q4_K_M"}, Case{"gemma-2b", "Q8_0"},
        Case{"gemma2-2b", "Q4_K_M"}, Case{"gemma3-1b", "Q4_0"},
        Case{"phi3-mini", "Q4_K_M"}, Case{"granite-3-2b", "F16"},
        Case{"olmo2-1b", "Q8_0"}, Case{"bert-base", "Q8_0"},
        Case{"qwen1.5-moe-a2.7b", "Q4_K_M"}, Case{"mixtral-small", "Q4_K_M"},
        Case{"mixtral-small", "Q8_0"}, Case{"qwen3-30b-a3b", "Q4_K_M"},
        Case{"gpt-oss-20b", "MXFP4_MOE"}, Case{"gemma4-26b-a4b", "Q4_K_M"},
        Case{"gemma4-e4b", "Q4_K_M"}, Case{"deepseek-v2-lite", "Q4_K_M"},
        Case{"deepseek-v3", "Q4_K_M"}, Case{"glm4.5-air", "Q4_K_M"},
        Case{"qwen3.5-0.8b", "Q4_K_M"}, Case{"qwen3.5-4b", "Q4_K_M"},
        Case{"qwen3.6-35b-a3b", "Q4_K_M"}, Case{"qwen3-next-80b-a3b", "Q4_K_M"},
        Case{"lfm2-1.2b", "Q4_K_M"}, Case{"granite-4-h-tiny", "Q4_K_M"},
        Case{"nemotron-nano-9b", "Q4_K_M"}),
    CaseName);

}  // namespace
}  // namespace weft
