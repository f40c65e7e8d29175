// A model that several ranks run together gives the bits that it gives alone.
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/synthesize.h"
#include "runtime/api/model.h"
#include "runtime/execution/rank_steps.h"
#include "runtime/plan/plan_identity.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The ranks above 0, in a thread each.
class OtherRanks {
 public:
  OtherRanks(const std::string& path, const EngineOptions& options, int ranks)
      : world_(ThreadCommunicators(ranks)) {
    for (int rank = 1; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank, path, options] {
        EngineOptions own = options;
        own.communicator = world_[rank];
        const auto engine = Engine::Load(path, own);
        const absl::Status status =
            engine.ok() ? (*engine)->Follow() : engine.status();
        EXPECT_TRUE(status.ok()) << path << " rank " << rank << ": " << status;
        if (!status.ok()) world_[rank]->Abort(status);
      });
    }
  }
  ~OtherRanks() {
    for (std::thread& thread : threads_) thread.join();
  }

  std::shared_ptr<Communicator> first() const { return world_[0]; }

 private:
  std::vector<std::shared_ptr<Communicator>> world_;
  std::vector<std::thread> threads_;
};

std::vector<float> LogitsOfRanks(const std::string& path, EngineOptions options,
                                 const std::vector<int32_t>& tokens,
                                 int64_t chunk, int ranks) {
  const OtherRanks others(path, options, ranks);
  options.communicator = others.first();
  std::vector<float> logits = Logits(path, options, tokens, chunk);
  if (logits.empty()) options.communicator->Abort(absl::OkStatus());
  return logits;
}

class ShardsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ShardsTest, RanksTogetherGiveTheBitsOfOneAlone) {
  const std::vector<int32_t> tokens = SomeTokens(40);
  EngineOptions options;
  options.threads = 1;
  int models = 0;
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    if (model.name == "bert") continue;
    const std::vector<float> alone = Logits(model.path(), options, tokens, 512);
    for (int ranks : {2, 3, 4}) {
      EXPECT_TRUE(SameBits(
          alone, LogitsOfRanks(model.path(), options, tokens, 7, ranks)))
          << model.path() << " by " << ranks;
    }
    ++models;
  }
  EXPECT_GE(models, 5);
}

// Ranks meet in them; shares that are not even have other sizes, and may not
// lead to another order.
TEST_P(ShardsTest, EveryRankExchangesTheSameInTheSameOrder) {
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    const auto file = OpenModel(model.path());
    ASSERT_TRUE(file.ok()) << file.status();
    for (const int64_t ranks : {2, 3, 5}) {
      for (const char* without : {"", "fuse-qkv", "fuse-attention"}) {
        std::string first;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          ModelOptions options = DefaultModelOptions();
          options.compile.shard = {rank, ranks};
          options.compile.buckets = {1, 64};
          if (*without != 0) options.compile.disabled_passes = {without};
          const auto plan = CompileModel(*file, options);
          ASSERT_TRUE(plan.ok()) << model.path() << ": " << plan.status();
          const std::string exchanges = ExchangesOf(*plan);
          if (rank == 0) first = exchanges;
          EXPECT_EQ(exchanges, first) << model.path() << ": rank " << rank
                                      << " of " << ranks << " " << without;
        }
      }
    }
  }
}

TEST_P(ShardsTest, AttentionThatIsNotFusedGivesTheBitsOfOneAlone) {
  const std::vector<int32_t> tokens = SomeTokens(20);
  EngineOptions options;
  options.threads = 1;
  options.model.compile.disabled_passes = {"fuse-attention"};
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    if (model.name == "bert") continue;
    const std::vector<float> alone = Logits(model.path(), options, tokens, 512);
    EXPECT_TRUE(
        SameBits(alone, LogitsOfRanks(model.path(), options, tokens, 7, 2)))
        << model.path();
  }
}

TEST_P(ShardsTest, ProductsOfBfloat16GiveTheBitsOfOneAlone) {
  const std::vector<int32_t> tokens = SomeTokens(40);
  EngineOptions options;
  options.threads = 1;
  options.model.compile.f16_compute = F16Compute::kBF16;
  for (const GoldenModel& model : GoldenModels(GetParam())) {
    if (model.name == "bert") continue;
    const std::vector<float> alone = Logits(model.path(), options, tokens, 512);
    EXPECT_TRUE(
        SameBits(alone, LogitsOfRanks(model.path(), options, tokens, 7, 3)))
        << model.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, ShardsTest,
                         ::testing::Values("arch", "families", "recurrent"),
                         [](const auto& set) {
                           return std::string(set.param);
                         });

// What rank 0 is told where rank 1 has other options, or another model.
std::string WhyNotTogether(const std::string& path,
                           const EngineOptions& options,
                           const std::string& other_path,
                           const EngineOptions& other) {
  const auto world = ThreadCommunicators(2);
  std::string why;
  const auto load = [&](int rank) {
    EngineOptions own = rank == 0 ? options : other;
    own.threads = 1;
    own.communicator = world[rank];
    const auto engine = Engine::Load(rank == 0 ? path : other_path, own);
    EXPECT_FALSE(engine.ok());
    if (rank == 0) why = std::string(engine.status().message());
    if (engine.ok()) world[rank]->Abort(absl::OkStatus());
  };
  std::thread second(load, 1);
  load(0);
  second.join();
  return why;
}

// Of noise: two files that differ in their numbers alone.
std::string Noise(uint64_t seed) {
  const std::string name =
      ::testing::TempDir() + "/noise" + std::to_string(seed);
  std::ofstream(name + ".json")
      << R"({"embedding_length": 128, "block_count": 2,
             "feed_forward_length": 256, "head_count": 4, "head_count_kv": 4,
             "vocabulary_size": 320, "context_length": 128})";
  SynthesizeOptions options;
  options.shape = name + ".json";
  options.type = "F16";
  options.seed = seed;
  EXPECT_TRUE(SynthesizeModel(options, name + ".gguf").ok());
  return name + ".gguf";
}

TEST(RanksTogether, AreRefusedWhereTheyDiffer) {
  const std::string one = Noise(1), two = Noise(2);
  const EngineOptions plain;
  EXPECT_THAT(WhyNotTogether(one, plain, two, plain),
              HasSubstr("header, weights and adapters: rank 0 has "));
  EngineOptions bf16;
  bf16.model.compile.f16_compute = F16Compute::kBF16;
  EXPECT_THAT(WhyNotTogether(one, plain, one, bf16),
              AllOf(HasSubstr("F16 products in f32"),
                    HasSubstr("F16 products in bf16")));
  for (const char* pass : {"shard", "quantize-activations", "fuse-qkv"}) {
    EngineOptions without;
    without.model.compile.disabled_passes = {pass};
    EXPECT_THAT(WhyNotTogether(one, without, one, plain),
                HasSubstr(std::string("passes left out ") + pass));
  }
  EngineOptions more;
  more.slots = 2;
  EXPECT_THAT(WhyNotTogether(one, plain, one, more),
              AllOf(HasSubstr("they differ in sequences: "),
                    HasSubstr("sequences 1"), HasSubstr("sequences 2")));
}

TEST(RanksTogether, CompareWhatIsTooLongToShow) {
  const std::string name(5000, 'a');
  const auto status_of = [](const std::string& first,
                            const std::string& second) {
    const auto world = ThreadCommunicators(2);
    absl::Status status;
    std::thread other([&] {
      CheckSameOnAllRanks(world[1].get(), {{"model", second}}).IgnoreError();
    });
    status = CheckSameOnAllRanks(world[0].get(), {{"model", first}});
    other.join();
    return status;
  };
  EXPECT_TRUE(status_of(name, name).ok());
  const absl::Status status = status_of(name + "1", name + "2");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("they differ in model: rank 0 has model aaaa"));
  EXPECT_LT(status.message().size(), 1000u);
  const std::string huge(3 << 20, 'b');
  EXPECT_FALSE(status_of(huge + "1", huge + "2").ok());
  // What one does not know agrees with all.
  EXPECT_TRUE(status_of("", name).ok());
}

}  // namespace
}  // namespace weft
