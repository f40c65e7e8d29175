// A model that several ranks run together gives the bits that it gives alone.
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/made_up_model.h"

namespace weft {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Sets, ShardsTest,
                         ::testing::Values("arch", "families", "recurrent"),
                         [](const auto& set) {
                           return std::string(set.param);
                         });

}  // namespace
}  // namespace weft
