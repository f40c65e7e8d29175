// A step of decoding takes no memory from the heap.
#include <vector>

#include "base/allocation_counter.h"
#include "gtest/gtest.h"
#include "runtime/api/engine.h"
#include "runtime/generation/sampler.h"

namespace weft {
namespace {

TEST(AllocationTest, DecodeStepsAllocateNothingAfterTheFirst) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load("", {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  absl::StatusOr<Sampler> sampler = Sampler::Create(
      SamplingOptions(),
      static_cast<int32_t>((*engine)->plan().model.vocabulary_size));
  ASSERT_TRUE(sampler.ok());
  Session session((*engine)->plan(), &(*engine)->executor(),
                  &(*engine)->cache(), 0);
  std::vector<int32_t> history = {1, 429};
  history.reserve(200);
  ASSERT_TRUE(session.Append(history).ok());
  int64_t before = 0;
  for (int step = 0; step < 100; ++step) {
    if (step == 1) before = AllocationCount();
    const absl::StatusOr<int32_t> token =
        sampler->Sample(session.logits(), history);
    ASSERT_TRUE(token.ok());
    history.push_back(*token);
    ASSERT_TRUE(session.Append(absl::MakeConstSpan(&*token, 1)).ok());
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

TEST(AllocationTest, ThePlannedPeakKnowsWhatIsTaken) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load("", {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const PlanMemory memory = MemoryOf((*engine)->plan(), 1, 1);
  EXPECT_EQ((*engine)->executor().arena_bytes(), memory.arena);
  EXPECT_EQ((*engine)->cache().bytes(), memory.kv);
}

}  // namespace
}  // namespace weft
