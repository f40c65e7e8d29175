// Blocks whose keys and values have types of their own: graphs, memory, results
// and plan files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/listing.h"
#include "graph/text_format.h"
#include "models/default_model.h"
#include "ops/storage.h"
#include "runtime/api/engine.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr char kMixed[] = "q8_0,0=f32,2-3=f16";

ModelOptions Options(const std::string& kv) {
  ModelOptions options = DefaultModelOptions();
  absl::StatusOr<KvTypes> types = KvTypes::Parse(kv);
  EXPECT_TRUE(types.ok()) << types.status();
  options.graph.kv_type = *types;
  options.compile.buckets = {1, 8};
  return options;
}

Plan CompileDefault(const std::string& kv, const std::string& stop_after = "") {
  absl::StatusOr<GgufFile> file = OpenModel("");
  EXPECT_TRUE(file.ok());
  absl::StatusOr<Plan> plan =
      CompileModel(*file, Options(kv), nullptr, stop_after);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

std::unique_ptr<Engine> Load(const std::string& path,
                             const ModelOptions& model) {
  EngineOptions options;
  options.model = model;
  options.threads = 1;
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return engine.ok() ? *std::move(engine) : nullptr;
}

// After 100 tokens: keys and values fill more than a page.
std::vector<float> Logits(const std::string& path, const ModelOptions& model,
                          int64_t chunk = 8) {
  const auto engine = Load(path, model);
  if (engine == nullptr) return {};
  std::vector<int32_t> tokens;
  for (int i = 0; i < 100; ++i) tokens.push_back(3 + i * 17 % 2000);
  std::vector<float> logits;
  const absl::Status s = engine->Evaluate(
      tokens, {50, 99}, chunk, [&](int64_t, absl::Span<const float> row) {
        logits.insert(logits.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(s.ok()) << s;
  return logits;
}

// Nodes and states of one block, without the numbers of values.
std::string BlockText(const Plan& plan, int block) {
  DumpOptions options;
  options.show = [block](const Node& node) {
    return BlockOf(node.name) == block;
  };
  const std::vector<int> numbers(plan.buckets[0].value_count(), 0);
  options.numbers = &numbers;
  std::string text;
  for (absl::string_view line :
       absl::StrSplit(Dump(plan.buckets[0], options), '\n')) {
    if (!absl::StrContains(line, "left out"))
      absl::StrAppend(&text, line, "\n");
  }
  return text;
}

TEST(MixedKvTypes, EachBlockIsThatOfItsOwnType) {
  const char* const types[] = {"f32", "q8_0", "f16", "f16"};
  const Plan mixed = CompileDefault(kMixed, "choose-kernels");
  EXPECT_EQ(KvTypes::Of(mixed.buckets[0]).ToString(), "f16,0=f32,1=q8_0");
  for (int block = 0; block < 4; ++block) {
    const std::string text = BlockText(mixed, block);
    EXPECT_EQ(text,
              BlockText(CompileDefault(types[block], "choose-kernels"), block));
    EXPECT_THAT(text, HasSubstr(std::string(types[block]) + "[S,4,32]{keys}"));
  }
}

TEST(MixedKvTypes, MemoryIsThatOfTheBlocks) {
  // By token: 4 heads of 32 keys and as many values.
  const int64_t f32 = 2 * 128 * 4, f16 = 2 * 128 * 2,
                q8_0 = 2 * (128 + 128 / 32 * 2);
  const Plan plan = CompileDefault(kMixed);
  const PlanMemory memory = MemoryOf(plan, 1, 1);
  EXPECT_EQ(memory.kv_per_token, f32 + q8_0 + 2 * f16);
  EXPECT_EQ(memory.kv, 512 * memory.kv_per_token);
  const std::vector<StateBytes> pages = StatesOf(plan.buckets[0]);
  ASSERT_EQ(pages.size(), 8u);
  EXPECT_EQ(pages[0].bytes, f32 / 2 * kPageTokens);
  EXPECT_EQ(pages[2].bytes, q8_0 / 2 * kPageTokens);
  EXPECT_EQ(pages[7].bytes, f16 / 2 * kPageTokens);
  const auto engine = Load("", Options(kMixed));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->cache().bytes(), memory.kv);
}

TEST(MixedKvTypes, NamingEveryBlockIsTheSameAsOneType) {
  const std::vector<float> f16 = Logits("", Options("f16"));
  EXPECT_EQ(Logits("", Options("f32,0-3=f16")), f16);
  EXPECT_EQ(Logits("", Options("q8_0,3=f16,0-2=f16")), f16);
  EXPECT_NE(Logits("", Options("f16,3=f32")), f16);
  EXPECT_NE(Logits("", Options("f16,0=f32")), f16);
}

TEST(MixedKvTypes, ChunksDoNotMatter) {
  EXPECT_EQ(Logits("", Options(kMixed), 1), Logits("", Options(kMixed), 8));
}

TEST(MixedKvTypes, MorePrecisionIsNearer) {
  // Squared distance to f32 everywhere: four blocks in q8_0 err more than one.
  // Rounded activations would hide the difference, as the least change of one
  // moves it by a whole step.
  const auto logits_with = [](const std::string& kv) {
    ModelOptions options = Options(kv);
    options.compile.disabled_passes = {"quantize-activations"};
    return Logits("", options);
  };
  const std::vector<float> exact = logits_with("f32");
  const auto distance = [&](const std::string& kv) {
    const std::vector<float> logits = logits_with(kv);
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      sum += (logits[i] - exact[i]) * (logits[i] - exact[i]);
    }
    return sum;
  };
  const double all = distance("q8_0"), one = distance("f32,2=q8_0");
  EXPECT_GT(one, 0);
  EXPECT_LT(one, all / 1.5);
}

TEST(MixedKvTypes, PlanFilesKeepThem) {
  const std::string packed = ::testing::TempDir() + "/packed.weft",
                    model = ::testing::TempDir() + "/model.gguf",
                    reference = ::testing::TempDir() + "/reference.weft";
  const auto bytes = DefaultModel();
  std::ofstream(model, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  absl::StatusOr<GgufFile> file = OpenModel(model);
  ASSERT_TRUE(file.ok()) << file.status();
  const ModelOptions options = Options(kMixed);
  absl::StatusOr<Plan> plan = CompileModel(*file, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(SavePlan(*plan, packed, **ThreadPool::Create(1)).ok());
  ASSERT_TRUE(SaveModelReference(*plan, *file, model, options, reference).ok());
  const std::vector<float> want = Logits(model, options);
  EXPECT_EQ(Logits(packed, Options("f16")), want);
  EXPECT_EQ(Logits(reference, Options("f16")), want);
  absl::StatusOr<PlanFile> loaded = LoadPlanFile(reference);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->reference->kv_type.ToString(), "q8_0,0=f32,2-3=f16");
}

TEST(MixedKvTypes, ABlockThatIsNotThereIsAnError) {
  absl::StatusOr<GgufFile> file = OpenModel("");
  ASSERT_TRUE(file.ok());
  const absl::Status s = CompileModel(*file, Options("f16,2-4=f32")).status();
  EXPECT_THAT(std::string(s.message()), HasSubstr("not there: 4"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("blocks 0 to 3"));
}

}  // namespace
}  // namespace weft
