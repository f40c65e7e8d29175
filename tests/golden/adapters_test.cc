// Adapters beside the weights of a model: what they add, and that a row's bits
// are those of its own adapters alone.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/pipeline.h"
#include "tests/golden/made_up_model.h"
#include "tests/loaders/adapter_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// F32, rows of odd lengths; products with parts of weights; and the embedded
// model, Q8_0.
constexpr char kTinyModel[] = "tests/data/golden/arch/llama-gqa.gguf";
constexpr char kTinyHybrid[] = "tests/data/golden/recurrent/qwen35-head64.gguf";
constexpr const char* kModels[] = {kTinyModel, kTinyHybrid, ""};

GgufFile Open(const std::string& path) {
  absl::StatusOr<GgufFile> file = OpenModel(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// Of different ranks and tensors, so that the ones of a weight never are all.
std::vector<AdapterChoice> SomeAdapters(const GgufFile& model) {
  AdapterFile all, halves, attention;
  halves.seed = 2;
  halves.rank = 7;
  halves.alpha = 3;
  halves.type = DType::kF16;
  halves.tensors = {"attn_q.weight", "attn_v.weight", "ffn_down.weight"};
  attention.seed = 3;
  attention.rank = 16;
  attention.tensors = {"attn_q.weight", "attn_k.weight", "attn_output.weight",
                       "output.weight"};
  return {MakeAdapter(model, all, 0.75f), MakeAdapter(model, halves, -1.5f),
          MakeAdapter(model, attention, 1)};
}

EngineOptions OptionsWith(std::vector<AdapterChoice> adapters) {
  EngineOptions options;
  options.threads = 2;
  options.model.graph.adapters = std::move(adapters);
  return options;
}

double NormalizedError(const std::vector<float>& found,
                       const std::vector<float>& want) {
  double error = 0, size = 0;
  EXPECT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size() && i < found.size(); ++i) {
    error += std::pow(static_cast<double>(found[i]) - want[i], 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  return error / size;
}

TEST(Adapters, BesideTheWeightsAreWhatMergedOnesAre) {
  for (const char* path : {kTinyModel, kTinyHybrid}) {
    const std::vector<AdapterChoice> adapters = SomeAdapters(Open(path));
    const std::vector<int32_t> tokens = SomeTokens(40);
    // A cache that rounds would tell more of itself.
    EngineOptions plain = OptionsWith({}), adapted = OptionsWith(adapters);
    plain.model.graph.kv_type = adapted.model.graph.kv_type =
        *KvTypes::Parse("f32");
    const std::vector<float> beside = Logits(path, adapted, tokens, 512);
    const std::vector<float> base = Logits(path, plain, tokens, 512);
    GgufFile model = Open(path);
    ASSERT_TRUE(MergeAdapters(adapters, &model).ok());
    const std::string file = ::testing::TempDir() + "/merged.gguf";
    WriteModel(model, file);
    const std::vector<float> merged = Logits(file, plain, tokens, 512);
    EXPECT_LT(NormalizedError(beside, merged), 1e-11) << path;
    EXPECT_GT(NormalizedError(base, merged), 0.01) << path;
  }
}

TEST(Adapters, ThatAreNotAskedForLeaveNoTrace) {
  for (const char* path : kModels) {
    std::vector<AdapterChoice> adapters = SomeAdapters(Open(path));
    for (AdapterChoice& choice : adapters) choice.scale = 0;
    adapters[1].scale = -0.0f;
    const std::vector<int32_t> tokens = SomeTokens(40);
    EXPECT_TRUE(
        SameBits(Logits(path, OptionsWith({}), tokens, 512),
                 Logits(path, OptionsWith(std::move(adapters)), tokens, 512)))
        << path;
  }
}

// What each of several sequences gives, with scales of its own, in steps of
// some rows of all of them.
std::vector<std::vector<float>> Together(
    const std::string& path, const std::vector<AdapterChoice>& adapters,
    const std::vector<std::vector<int32_t>>& texts,
    const std::vector<std::vector<float>>& scales) {
  EngineOptions options = OptionsWith(adapters);
  const int32_t count = static_cast<int32_t>(texts.size());
  options.slots = count;
  const auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << path << ": " << engine.status();
  std::vector<std::vector<float>> together(count);
  if (!engine.ok()) return together;
  const int64_t columns = (*engine)->plan().model.output_columns();
  for (int step = 0;; ++step) {
    std::vector<int32_t> ids, positions, slots, rows;
    std::vector<float> row_scales;
    for (int32_t i = 0; i < count; ++i) {
      const size_t done = together[i].size() / columns;
      const size_t end = std::min(done + (i + step) % 5, texts[i].size());
      for (size_t at = done; at < end; ++at) {
        rows.push_back(static_cast<int32_t>(ids.size()));
        ids.push_back(texts[i][at]);
        positions.push_back(static_cast<int32_t>(at));
        slots.push_back(i);
        row_scales.insert(row_scales.end(), scales[i].begin(), scales[i].end());
      }
      EXPECT_TRUE((*engine)->cache().Reserve(i, end).ok());
    }
    if (ids.empty()) return together;
    std::vector<float> logits(ids.size() * columns);
    const absl::Status ran = (*engine)->executor().Run(
        {ids, positions, slots, rows, logits.data(), row_scales});
    EXPECT_TRUE(ran.ok()) << path << ": " << ran;
    if (!ran.ok()) return together;
    for (size_t row = 0; row < slots.size(); ++row) {
      const float* begin = logits.data() + row * columns;
      std::vector<float>& all = together[slots[row]];
      all.insert(all.end(), begin, begin + columns);
    }
  }
}

TEST(Adapters, RowsOfOneStepHaveTheBitsOfTheirOwnAlone) {
  for (const char* path : kModels) {
    const std::vector<AdapterChoice> adapters = SomeAdapters(Open(path));
    const std::vector<std::vector<float>> scales = {
        {0, 0, 0}, {1, 0, 0}, {0, 0.5f, 0}, {0, 0, 2},
        {1, 0, 2}, {0, 0, 0}, {1, 0.5f, 0}, {1, 0, 0}};
    const std::vector<int32_t> tokens = SomeTokens(64);
    std::vector<std::vector<int32_t>> texts;
    for (size_t i = 0; i < scales.size(); ++i) {
      texts.emplace_back(tokens.begin() + 3 * i, tokens.begin() + 25 + 4 * i);
    }
    const auto together = Together(path, adapters, texts, scales);
    for (size_t i = 0; i < scales.size(); ++i) {
      // In an engine that has no other adapters.
      std::vector<AdapterChoice> own;
      for (size_t k = 0; k < adapters.size(); ++k) {
        if (scales[i][k] == 0) continue;
        own.push_back({adapters[k].adapter, scales[i][k]});
      }
      EXPECT_TRUE(
          SameBits(Logits(path, OptionsWith(own), texts[i], 512), together[i]))
          << path << " sequence " << i;
    }
  }
}

TEST(Adapters, ChunksAndPassesChangeNoBit) {
  for (const char* path : kModels) {
    EngineOptions options = OptionsWith(SomeAdapters(Open(path)));
    const std::vector<int32_t> tokens = SomeTokens(70);
    const std::vector<float> logits = Logits(path, options, tokens, 512);
    for (int64_t chunk : {1, 7}) {
      EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, chunk)))
          << path << " chunk " << chunk;
    }
    options.threads = 1;
    EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 512))) << path;
    for (const PassEntry& pass : Pipeline()) {
      if (pass.tolerance != 0) continue;
      options.model.compile.disabled_passes = {pass.name};
      EXPECT_TRUE(SameBits(logits, Logits(path, options, tokens, 512)))
          << path << " without " << pass.name;
    }
  }
}

TEST(Adapters, WithoutThePassThereAreNone) {
  EngineOptions options = OptionsWith(SomeAdapters(Open(kTinyModel)));
  options.model.compile.disabled_passes = {"add-adapters"};
  const std::vector<int32_t> tokens = SomeTokens(20);
  EXPECT_TRUE(SameBits(Logits(kTinyModel, OptionsWith({}), tokens, 512),
                       Logits(kTinyModel, options, tokens, 512)));
}

TEST(Adapters, PassesAndKernelsGiveWhatReferenceFunctionsGive) {
  for (const char* path : kModels) {
    const GgufFile file = Open(path);
    ExpectReferenceResults(file, SomeTokens(12), SomeAdapters(file));
  }
}

TEST(Adapters, PlansKeepThem) {
  const GgufFile file = Open(kTinyModel);
  EngineOptions options = OptionsWith(SomeAdapters(file));
  const std::vector<int32_t> tokens = SomeTokens(30);
  const std::vector<float> logits = Logits(kTinyModel, options, tokens, 512);
  absl::StatusOr<Plan> plan = CompileModel(file, options.model);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->source.has_value());
  const std::string path = ::testing::TempDir() + "/adapted.weft";
  EXPECT_THAT(std::string(SaveModelReference(*plan, file, kTinyModel,
                                             options.model, path)
                              .message()),
              HasSubstr("choose packed weights"));
  const auto threads = ThreadPool::Create(2);
  ASSERT_TRUE(threads.ok()) << threads.status();
  ASSERT_TRUE(SaveModelPlan(*plan, file, path, **threads).ok());
  const auto engine = Engine::Load(path, {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::vector<AdapterInfo>& kept = (*engine)->plan().model.adapters;
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[1].rank, 7);
  EXPECT_EQ(kept[1].scale, -1.5f);
  EXPECT_TRUE(SameBits(logits, Logits(path, {}, tokens, 512)));
  EXPECT_THAT(std::string(CheckSource(file, *plan, path).message()),
              HasSubstr("it has adapters"));
}

TEST(Adapters, AreCountedInTheMemoryOfAPlan) {
  const GgufFile file = Open(kTinyModel);
  const auto bytes = [&](std::vector<AdapterChoice> adapters) {
    const auto plan =
        CompileModel(file, OptionsWith(std::move(adapters)).model);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return MemoryOf(*plan, 1, 1).weights;
  };
  const std::vector<AdapterChoice> adapters = SomeAdapters(file);
  int64_t numbers = 0;
  for (const AdapterChoice& choice : adapters) {
    for (const LoraAdapter::Pair& pair : choice.adapter->pairs()) {
      numbers += static_cast<int64_t>(pair.a.size() + pair.b.size());
    }
  }
  const int64_t more = bytes(adapters) - bytes({});
  EXPECT_GE(more, numbers * 4);
  EXPECT_LE(more, numbers * 4 + 64 * 2 * 23);  // each weight in whole lines
}

std::string Refusal(const std::string& tensor, const std::string& path,
                    std::vector<int64_t> a, std::vector<int64_t> b) {
  const GgufFile file = Open(path);
  GgufWriter writer;
  SetAdapterKeys(&writer, *file.GetString("general.architecture"), 1);
  std::mt19937 random(1);
  AddRandomTensor(&writer, tensor + ".lora_a", DType::kF32, a, 1, &random);
  AddRandomTensor(&writer, tensor + ".lora_b", DType::kF32, b, 1, &random);
  const std::string adapter = ::testing::TempDir() + "/one.gguf";
  EXPECT_TRUE(writer.WriteTo(adapter).ok());
  const auto choice = OpenAdapter(adapter);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return std::string(
      CompileModel(file, OptionsWith({*choice}).model).status().message());
}

TEST(Adapters, OfTablesAndVectorsCanOnlyBeMerged) {
  EXPECT_THAT(Refusal("token_embd.weight", kTinyModel, {2, 320}, {2, 64}),
              HasSubstr("is read by embed: merge it"));
  EXPECT_THAT(Refusal("blk.0.attn_norm.weight", kTinyModel, {64, 2}, {2, 1}),
              HasSubstr("merge it"));
  EXPECT_THAT(Refusal("blk.9.attn_q.weight", kTinyModel, {64, 2}, {2, 64}),
              HasSubstr("has no tensor 'blk.9.attn_q.weight'"));
}

TEST(Adapters, ScalesThatAreNoNumbersRunNothing) {
  EngineOptions options = OptionsWith(SomeAdapters(Open(kTinyModel)));
  const auto engine = Engine::Load(kTinyModel, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  ASSERT_TRUE((*engine)->cache().Reserve(0, 1).ok());
  const std::vector<int32_t> zero = {0}, id = {5};
  std::vector<float> logits((*engine)->plan().model.output_columns());
  const auto run = [&](std::vector<float> scales) {
    return std::string((*engine)
                           ->executor()
                           .Run({id, zero, zero, zero, logits.data(), scales})
                           .message());
  };
  EXPECT_THAT(run({1, 2}), HasSubstr("number of scales"));
  EXPECT_THAT(run({1, NAN, 0}), HasSubstr("not finite"));
  EXPECT_EQ(run({1, 0, 0}), "");
}

}  // namespace
}  // namespace weft
