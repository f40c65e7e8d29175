#include "runtime/ranks/thread_communicator.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace weft {
namespace {

// Runs `rank` on a thread for each.
void OnRanks(int ranks, const std::function<void(Communicator*)>& rank) {
  const auto world = ThreadCommunicators(ranks);
  std::vector<std::thread> threads;
  for (const auto& one : world) threads.emplace_back(rank, one.get());
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadCommunicator, GathersPartsOfAnySizeInOrderOfRanks) {
  OnRanks(3, [](Communicator* world) {
    const std::string parts[] = {"ab", "", "cdefg"};
    for (int round = 0; round < 100; ++round) {
      std::string all(7, '?');
      ASSERT_TRUE(world
                      ->AllGather(parts[world->rank()].data(), {2, 0, 5},
                                  reinterpret_cast<uint8_t*>(all.data()))
                      .ok());
      EXPECT_EQ(all, "abcdefg");
    }
  });
}

TEST(ThreadCommunicator, TellsAllWhatTheFirstRankHas) {
  OnRanks(4, [](Communicator* world) {
    for (int round = 0; round < 100; ++round) {
      int number = world->rank() == 0 ? round : -1;
      ASSERT_TRUE(world->Broadcast(&number, sizeof(number)).ok());
      EXPECT_EQ(number, round);
    }
  });
}

TEST(ThreadCommunicator, WaitsForNobodyWhenARankHasEnded) {
  OnRanks(3, [](Communicator* world) {
    if (world->rank() == 2) return world->Abort(absl::OkStatus());
    int number = 0;
    EXPECT_FALSE(world->Broadcast(&number, sizeof(number)).ok());
  });
}

}  // namespace
}  // namespace weft
