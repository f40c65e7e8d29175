#include "runtime/machine/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "base/allocation_counter.h"
#include "runtime/machine/float_mode.h"

namespace weft {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::unique_ptr<ThreadPool> MakePool(int threads,
                                     std::vector<int> affinity = {}) {
  auto pool = ThreadPool::Create(threads, std::move(affinity));
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

// Whether this thread multiplies subnormal numbers, read at run time.
bool KeepsSubnormals() {
  volatile float tiny = std::numeric_limits<float>::denorm_min();
  volatile float product = tiny * 4.0f;
  uint32_t bits;
  const float copy = product;
  std::memcpy(&bits, &copy, sizeof(bits));
  return bits != 0;
}

TEST(ThreadPool, RunsEveryItemOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    auto pool = MakePool(threads);
    for (const int64_t items : {0, 1, 2, 3, 7, 8, 9, 55, 56, 57, 1000, 4097}) {
      std::vector<std::atomic<int>> runs(items);
      std::atomic<bool> in_range{true};
      pool->ParallelFor(items, [&](int64_t begin, int64_t end, int thread) {
        if (begin >= end || thread < 0 || thread >= threads) in_range = false;
        for (int64_t i = begin; i < end; ++i) ++runs[i];
      });
      EXPECT_TRUE(in_range);
      for (const auto& count : runs) ASSERT_EQ(count, 1) << items;
    }
  }
}

TEST(ThreadPool, CutsHugeCountsWithoutOverflow) {
  auto pool = MakePool(2);
  constexpr int64_t kItems = std::numeric_limits<int64_t>::max();
  std::atomic<uint64_t> sum{0};
  pool->ParallelFor(kItems, [&](int64_t begin, int64_t end, int) {
    sum += static_cast<uint64_t>(end - begin);
  });
  EXPECT_EQ(sum, static_cast<uint64_t>(kItems));
}

TEST(ThreadPool, NoTwoCallsAtOnceHaveTheSameThread) {
  auto pool = MakePool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<bool> clash{false};
  for (int round = 0; round < 100; ++round) {
    pool->ParallelFor(64, [&](int64_t, int64_t, int thread) {
      if (busy[thread].fetch_add(1) != 0) clash = true;
      std::this_thread::yield();
      busy[thread].fetch_sub(1);
    });
  }
  EXPECT_FALSE(clash);
}

TEST(ThreadPool, OthersTakeTheRangesOfAThreadThatIsHeldUp) {
  auto pool = MakePool(2);
  std::atomic<int> done{0};
  // The first range waits for all others, so somebody else must run them.
  pool->ParallelFor(8, [&](int64_t begin, int64_t, int) {
    while (begin == 0 && done < 7) std::this_thread::yield();
    ++done;
  });
  EXPECT_EQ(done, 8);
}

TEST(ThreadPool, FlushesSubnormalsOnEveryThreadAndOnlyInside) {
  ASSERT_TRUE(KeepsSubnormals());
  for (const int threads : {1, 4}) {
    auto pool = MakePool(threads);
    for (const int64_t items : {1, 100}) {
      std::atomic<int> kept{0};
      pool->ParallelFor(items, [&](int64_t, int64_t, int) {
        kept += KeepsSubnormals() ? 1 : 0;
      });
      EXPECT_EQ(kept, 0);
      EXPECT_TRUE(KeepsSubnormals());
    }
  }
}

TEST(ThreadPool, PutsAnUnusualFloatModeBack) {
  const uint64_t before = FloatMode();
  // Round towards zero.
#if defined(__x86_64__)
  const uint64_t unusual = before | 0x6000;
#else
  const uint64_t unusual = before | uint64_t{3} << 22;
#endif
  SetFloatMode(unusual);
  auto pool = MakePool(2);
  std::atomic<bool> same{true};
  pool->ParallelFor(10, [&](int64_t, int64_t, int) {
    // Without the sticky exception flags of x86, which work may raise.
    if ((FloatMode() & ~uint64_t{0x3f}) !=
        (kComputeFloatMode & ~uint64_t{0x3f})) {
      same = false;
    }
  });
  const uint64_t after = FloatMode();
  SetFloatMode(before);
  EXPECT_TRUE(same);
  EXPECT_EQ(after, unusual);
}

TEST(ThreadPool, ThreadCountsMayAlternate) {
  auto one = MakePool(1);
  auto two = MakePool(2);
  auto five = MakePool(5);
  for (int round = 0; round < 100; ++round) {
    for (auto* pool : {one.get(), two.get(), five.get()}) {
      std::atomic<int64_t> sum{0};
      pool->ParallelFor(32, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) sum += i;
      });
      ASSERT_EQ(sum, 31 * 32 / 2);
    }
  }
}

TEST(ThreadPool, TakesNoHeapMemory) {
  auto pool = MakePool(2);
  std::atomic<int64_t> sum{0};
  const auto body = [&](int64_t begin, int64_t end, int) {
    sum += end - begin;
  };
  pool->ParallelFor(100, body);
  const int64_t before = AllocationCount();
  for (int round = 0; round < 100; ++round) pool->ParallelFor(100, body);
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(sum, 101 * 100);
}

TEST(ThreadPoolScope, ComputesInOneFloatMode) {
  auto pool = MakePool(3);
  {
    ThreadPool::Scope scope(pool.get());
    EXPECT_FALSE(KeepsSubnormals());
    pool->ParallelFor(100, [](int64_t, int64_t, int) {});
    EXPECT_FALSE(KeepsSubnormals());
  }
  EXPECT_TRUE(KeepsSubnormals());
}

// Runs loops until every thread took part in one, which may take a while on a
// busy machine: a caller that was held up works alone for a time.
void RunUntilAllTookPart(ThreadPool* pool,
                         const std::function<void(int)>& body) {
  std::vector<std::atomic<bool>> seen(pool->threads());
  const auto all = [&] {
    return std::all_of(seen.begin(), seen.end(),
                       [](const std::atomic<bool>& x) { return x.load(); });
  };
  while (!all()) {
    std::atomic<int> done{0};
    pool->ParallelFor(16, [&](int64_t, int64_t, int thread) {
      body(thread);
      seen[thread] = true;
      ++done;
      const auto until =
          std::chrono::steady_clock::now() + std::chrono::microseconds(50);
      while (std::chrono::steady_clock::now() < until) {
      }
    });
    ASSERT_GE(done, 1);
  }
}

TEST(ThreadPoolScope, PinsThreadsInOrderAndFreesTheCaller) {
  const std::vector<int> allowed = AllowedCpus();
  if (allowed.size() < 2) GTEST_SKIP() << "needs two CPUs";
  auto pool = MakePool(2, {allowed[1], allowed[0]});
  for (int round = 0; round < 2; ++round) {
    std::vector<std::atomic<int>> cpus(2);
    {
      ThreadPool::Scope scope(pool.get());
      RunUntilAllTookPart(pool.get(),
                          [&](int thread) { cpus[thread] = sched_getcpu(); });
    }
    EXPECT_EQ(cpus[0], allowed[1]);
    EXPECT_EQ(cpus[1], allowed[0]);
    EXPECT_EQ(AllowedCpus(), allowed);
  }
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  auto pool = MakePool(3);
  for (int round = 0; round < 3; ++round) {
    // Longer than a worker stays awake.
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    RunUntilAllTookPart(pool.get(), [](int) {});
  }
}

TEST(ThreadPool, WaitsForAWorkerThatTakesLongAndTriesItAgain) {
  auto pool = MakePool(2);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> begun{0}, ended{0};
    RunUntilAllTookPart(pool.get(), [&](int thread) {
      ++begun;
      if (thread == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      ++ended;
    });
    EXPECT_EQ(begun, ended);
  }
}

// More threads than cores, so that they lose them in every place.
TEST(ThreadPool, LosesNothingOnABusyMachine) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  auto pool = MakePool(4);
  for (int64_t round = 0; round < 2000; ++round) {
    const int64_t items = 1 + round % 37;
    std::vector<int> runs(items);
    pool->ParallelFor(items, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) ++runs[i];
    });
    EXPECT_THAT(runs, Each(1)) << round;
  }
  stop = true;
  for (std::thread& other : others) other.join();
}

TEST(ThreadPool, RefusesWhatCannotBe) {
  EXPECT_THAT(std::string(ThreadPool::Create(0).status().message()),
              HasSubstr("number of threads: 0"));
  EXPECT_THAT(std::string(ThreadPool::Create(100000).status().message()),
              HasSubstr("number of threads: 100000"));
  EXPECT_THAT(std::string(ThreadPool::Create(2, {0}).status().message()),
              HasSubstr("1 CPUs for 2 threads"));
  EXPECT_THAT(std::string(ThreadPool::Create(1, {65000}).status().message()),
              HasSubstr("CPU 65000 is not"));
}

}  // namespace
}  // namespace weft
