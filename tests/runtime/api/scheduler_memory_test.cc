// What the scheduler allocates, and what it says before.
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/allocation_counter.h"
#include "gtest/gtest.h"
#include "tests/runtime/api/serving.h"

namespace weft {
namespace {

TEST(SchedulerMemoryTest, StepsThatDecodeAllocateNothing) {
  const auto scheduler = MakeScheduler(kTinyModel, 4, 0);
  Request request = MakeRequest(RandomPrompt(1, 30), 200);
  request.sampling.temperature = 0.8f;
  request.stop_strings = {"no such text"};
  request.choices = 4;
  // From the 20th token of the last choice to its 180th all four decode, over
  // the borders of pages.
  int64_t begin = 0, end = 0;
  size_t tokens = 0;
  absl::Notification done;
  ASSERT_TRUE(scheduler
                  ->Submit(std::move(request),
                           [&](const Event& event) {
                             if (event.choice == 3)
                               tokens += event.tokens.size();
                             if (begin == 0 && tokens >= 20)
                               begin = AllocationCount();
                             if (end == 0 && tokens >= 180)
                               end = AllocationCount();
                             if (event.last) done.Notify();
                           })
                  .ok());
  done.WaitForNotification();
  EXPECT_GT(end, 0);
  // A few times in 640 tokens, what a choice's event holds grows.
  EXPECT_LE(end - begin, 16);
}

// As `weft run` does it: not once from the second token to the last.
TEST(SchedulerMemoryTest, ATextAloneAllocatesNothing) {
  const auto scheduler = MakeScheduler(kTinyModel, 1, 0);
  for (const char* stop : {"", "no such text"}) {
    Request request = MakeRequest({20, 21}, 300);
    request.sampling = SamplingOptions();
    if (*stop != '\0') request.stop_strings = {stop};
    int64_t begin = 0, end = 0;
    size_t tokens = 0;
    const auto result =
        Complete(*scheduler, std::move(request), [&](const Event& event) {
          tokens += event.tokens.size();
          if (begin == 0 && tokens >= 20) begin = AllocationCount();
          if (tokens < 290) end = AllocationCount();
        });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(tokens, 300u);
    EXPECT_GT(begin, 0);
    // What holds a character that is not whole yet may grow.
    EXPECT_LE(end - begin, 2);
  }
}

TEST(SchedulerMemoryTest, PagesAndSequencesAreInThePlan) {
  EngineOptions options;
  options.slots = 8;
  options.kv_pages = 20;
  const auto engine = Engine::Load(kTinyModel, options);
  ASSERT_TRUE(engine.ok());
  const Plan& plan = (*engine)->plan();
  const PlanMemory memory = MemoryOf(plan, 8, 8, 20);
  EXPECT_EQ((*engine)->cache().bytes(), memory.kv);
  EXPECT_EQ((*engine)->cache().pool().pages(), 20);
  EXPECT_EQ(memory.logits, 8 * 320 * 4);
  EXPECT_GT(memory.batching, 2 * 8 * 512 * 4);
  // One token at a time is chosen in one part alone, whatever the threads.
  const PlanMemory one = MemoryOf(plan, 1, 1);
  EXPECT_EQ(one.peak(8) - one.peak(1), 7 * one.thread_scratch);
  EXPECT_EQ(memory.peak(9) - memory.peak(1),
            8 * memory.thread_scratch + 7 * memory.choosing);
  EXPECT_EQ(MemoryOf(plan, 3, 1).kv, 3 * MemoryOf(plan, 1, 1).kv);
  options.kv_pages = -1;
  EXPECT_FALSE(Engine::Load(kTinyModel, options).ok());
}

}  // namespace
}  // namespace weft
