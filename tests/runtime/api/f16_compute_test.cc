// --f16-compute bf16, from model file to logits.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/allocation_counter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/synthesize.h"
#include "ops/kernels/kernel_table.h"
#include "ops/kernels/matmul/onednn_tile.h"
#include "ops/ops.h"
#include "ops/weight_layout.h"
#include "runtime/api/engine.h"
#include "runtime/plan/plan_file.h"
#include "tests/golden/golden_data.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::Not;

std::string SmallModel(const std::string& type, bool tied) {
  const std::string name = testing::TempDir() + "/" + type + (tied ? "t" : "");
  std::ofstream(name + ".json")
      << R"({"embedding_length": 160, "block_count": 3,
             "feed_forward_length": 528, "head_count": 10, "head_count_kv": 2,
             "vocabulary_size": 700, "context_length": 256, "tied_output": )"
      << (tied ? "true}" : "false}");
  SynthesizeOptions options;
  options.shape = name + ".json";
  options.type = type;
  options.seed = 5;
  const auto report = SynthesizeModel(options, name + ".gguf");
  EXPECT_TRUE(report.ok()) << report.status();
  return name + ".gguf";
}

EngineOptions Options(F16Compute f16, int threads) {
  EngineOptions options;
  options.model.compile.f16_compute = f16;
  options.model.graph.kv_type = DType::kF32;
  options.threads = threads;
  return options;
}

EngineOptions Bf16(int threads = 2) {
  return Options(F16Compute::kBF16, threads);
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const EngineOptions& options) {
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::vector<float> Logits(Engine& engine, int count, int64_t chunk) {
  const int64_t vocabulary = engine.plan().model.vocabulary_size;
  std::vector<int32_t> tokens;
  std::vector<int64_t> positions;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((3 + 37 * i) % vocabulary));
    positions.push_back(i);
  }
  std::vector<float> logits;
  EXPECT_TRUE(engine
                  .Evaluate(tokens, positions, chunk,
                            [&](int64_t, absl::Span<const float> row) {
                              logits.insert(logits.end(), row.begin(),
                                            row.end());
                              return absl::OkStatus();
                            })
                  .ok());
  return logits;
}

std::vector<std::string> KernelsOf(const Graph& graph) {
  std::vector<std::string> kernels;
  for (NodeId id : graph.order()) {
    kernels.push_back(graph.node(id).kernel);
  }
  return kernels;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool HasBf16() { return Includes(DetectIsa(), Isa::kAvx512Bf16); }

void ExpectBf16IsOneFunctionOfTheTokens(const std::string& path, int tokens,
                                        double nmse_limit) {
  const auto engine = Load(path, Bf16());
  ASSERT_NE(engine, nullptr);
  const std::vector<float> whole = Logits(*engine, tokens, 512);
  for (const int64_t chunk : {1, 7, 40}) {
    EXPECT_TRUE(SameBits(Logits(*engine, tokens, chunk), whole))
        << path << " chunk " << chunk;
  }
  const auto one_thread = Load(path, Bf16(1));
  ASSERT_NE(one_thread, nullptr);
  EXPECT_TRUE(SameBits(Logits(*one_thread, tokens, 512), whole)) << path;
  const auto f32 = Load(path, Options(F16Compute::kF32, 2));
  ErrorSums sums;
  sums.Add(whole, Logits(*f32, tokens, 512));
  std::printf("NMSE of bf16 against f32: %.2e (%s)\n", sums.nmse(),
              path.c_str());
  EXPECT_GT(sums.nmse(), 0);
  EXPECT_LT(sums.nmse(), nmse_limit);
}

TEST(F16ComputeTest, Bf16IsBitIdenticalForAnyChunkAndThreads) {
  if (!HasBf16()) GTEST_SKIP();
  for (const char* type : {"F16", "BF16"}) {
    for (const bool tied : {false, true}) {
      // 0.5e-4 to 1.2e-4 on noise.
      ExpectBf16IsOneFunctionOfTheTokens(SmallModel(type, tied), 90, 3e-4);
    }
  }
}

TEST(F16ComputeTest, Bf16OnTheGoldenModel) {
  const std::string path = GoldenFolder("austen") + "/austen-F16.gguf";
  if (!HasBf16() || !std::ifstream(path).good()) GTEST_SKIP();
  // 1.3e-5 when written.
  ExpectBf16IsOneFunctionOfTheTokens(path, 200, 4e-5);
}

// A table that is embedding and output: products may round it, rows of the
// embedding are the file's own.
TEST(F16ComputeTest, EmbeddingsAreNeverRounded) {
  if (!HasBf16()) GTEST_SKIP();
  for (const bool f16 : {true, false}) {
    const auto engine = Load(SmallModel(f16 ? "F16" : "BF16", true), Bf16());
    ASSERT_NE(engine, nullptr);
    int embeds = 0, rounded = 0;
    for (const Graph& graph : engine->plan().buckets) {
      for (NodeId id : graph.order()) {
        const Node& node = graph.node(id);
        if (node.inputs.size() < 2) continue;
        const ValueType& table = graph.value(node.inputs[1]).type;
        const WeightLayout* layout = FindWeightLayout(table.layout);
        if (layout == nullptr) continue;
        if (!node.Is(kEmbedOp)) {
          rounded += !layout->keeps_exactly(table.dtype);
          continue;
        }
        ++embeds;
        EXPECT_TRUE(layout->keeps_exactly(table.dtype)) << table.ToString();
        // One table, where nothing of it is lost.
        EXPECT_EQ(table.layout.empty(), f16) << table.ToString();
      }
    }
    EXPECT_GT(embeds, 0);
    EXPECT_EQ(rounded > 0, f16);
  }
}

TEST(F16ComputeTest, DecodeTakesTheOwnKernelAndPrefillOneDnn) {
  if (!HasBf16()) GTEST_SKIP();
  const auto engine = Load(SmallModel("F16", false), Bf16());
  ASSERT_NE(engine, nullptr);
  EXPECT_THAT(KernelsOf(engine->plan().BucketFor(1)),
              Contains("matmul_f16_bf16x64_avx512bf16"));
  EXPECT_THAT(KernelsOf(engine->plan().BucketFor(1)),
              Not(Contains(EndsWith("onednn"))));
  EXPECT_THAT(KernelsOf(engine->plan().BucketFor(64)),
              Contains("matmul_f16_bf16x64_onednn"));
}

TEST(F16ComputeTest, PassesOffLeaveBf16LogitsAsTheyAre) {
  if (!HasBf16()) GTEST_SKIP();
  const std::string path = SmallModel("F16", false);
  const auto engine = Load(path, Bf16());
  ASSERT_NE(engine, nullptr);
  const std::vector<float> want = Logits(*engine, 70, 512);
  for (const char* pass : {"fuse-rmsnorm-matmul", "fuse-silu-gate", "fuse-qkv",
                           "fuse-residual", "choose-kernels"}) {
    EngineOptions options = Bf16();
    options.model.compile.disabled_passes = {pass};
    const auto without = Load(path, options);
    ASSERT_NE(without, nullptr);
    EXPECT_TRUE(SameBits(Logits(*without, 70, 512), want)) << pass;
  }
}

TEST(F16ComputeTest, WithoutBf16ArithmeticF32StaysAndTheReasonIsKept) {
  const std::string path = SmallModel("F16", false);
  EngineOptions options = Bf16();
  if (!Includes(DetectIsa(), Isa::kAvx2)) GTEST_SKIP();
  options.model.compile.isa = Isa::kAvx2;
  const auto engine = Load(path, options);
  ASSERT_NE(engine, nullptr);
  const Graph& graph = engine->plan().BucketFor(1);
  EXPECT_THAT(KernelsOf(graph), Contains("matmul_f16_1x64_avx2"));
  KernelOptions kernels;
  kernels.isa = Isa::kAvx2;
  kernels.f16_compute = F16Compute::kBF16;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kernel != "matmul_f16_1x64_avx2") continue;
    const KernelChoice choice = ChooseKernel({graph, node, kernels});
    std::string why;
    for (const auto& [row, reason] : choice.refused) {
      if (row->name() == "matmul_f16_bf16x64_avx512bf16") why = reason;
    }
    EXPECT_EQ(why, "needs avx512bf16");
  }
}

TEST(F16ComputeTest, PlanOfAnotherOneDnnVersionIsRefused) {
  if (!HasBf16()) GTEST_SKIP();
  const auto engine = Load(SmallModel("F16", false), Bf16());
  ASSERT_NE(engine, nullptr);
  Plan plan = engine->plan();
  ASSERT_TRUE(VerifyPlan(plan).ok());
  int changed = 0;
  Graph& graph = plan.buckets.front();
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    std::string& layout = graph.value(id).type.layout;
    if (layout == "onednn_bf16_" + OneDnnVersion()) {
      layout = "onednn_bf16_1.0.0";
      ++changed;
    }
  }
  EXPECT_GT(changed, 0);
  EXPECT_FALSE(VerifyPlan(plan).ok());
}

TEST(F16ComputeTest, PlanFilesKeepTheChoice) {
  if (!HasBf16()) GTEST_SKIP();
  const std::string path = SmallModel("F16", false);
  const auto engine = Load(path, Bf16());
  ASSERT_NE(engine, nullptr);
  const std::vector<float> want = Logits(*engine, 20, 512);
  const std::string packed = path + ".weft", reference = path + ".ref.weft";
  auto threads = ThreadPool::Create(2);
  ASSERT_TRUE(threads.ok());
  ASSERT_TRUE(SavePlan(engine->plan(), packed, **threads).ok());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(
      SaveModelReference(engine->plan(), *file, path, Bf16().model, reference)
          .ok());
  for (const std::string& plan : {packed, reference}) {
    EngineOptions options = Bf16();
    options.model.compile.f16_compute = F16Compute::kF32;  // the plan's counts
    const auto loaded = Load(plan, options);
    ASSERT_NE(loaded, nullptr);
    EXPECT_TRUE(SameBits(Logits(*loaded, 20, 512), want)) << plan;
  }
}

TEST(F16ComputeTest, StepsAllocateOnlyInsideOneDnn) {
  if (!HasBf16()) GTEST_SKIP();
  const auto engine = Load(SmallModel("F16", false), Bf16());
  ASSERT_NE(engine, nullptr);
  Session session(engine->plan(), &engine->executor(), &engine->cache(), 0);
  std::vector<int32_t> tokens(40, 5);
  const auto run = [&](absl::Span<const int32_t> some) {
    ASSERT_TRUE(session.Append(some).ok());
    ASSERT_TRUE(session.Truncate(0).ok());
  };
  CountApartWhile(InsideOneDnn);
  // The first step of a thread makes primitives.
  for (int i = 0; i < 5; ++i) run(tokens);
  run(absl::MakeConstSpan(tokens).first(1));
  const int64_t before = AllocationCount(), apart = AllocationsApart();
  run(tokens);
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_GT(AllocationsApart() - apart, 0);
  const int64_t after = AllocationsApart();
  run(absl::MakeConstSpan(tokens).first(1));
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_EQ(AllocationsApart() - after, 0);
}

}  // namespace
}  // namespace weft
