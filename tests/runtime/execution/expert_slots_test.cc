#include "runtime/execution/expert_slots.h"

#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

bool Any(int) { return true; }

TEST(ExpertSlotsTest, EmptySlotsAreTakenFirst) {
  ExpertSlots slots(8, 3);
  slots.Count({1}, 1);
  for (const int expert : {1, 5, 7}) {
    EXPECT_EQ(slots.SlotOf(expert), -1);
    const int slot = slots.Take(expert, Any);
    EXPECT_EQ(slot, slots.SlotOf(expert));
  }
  EXPECT_NE(slots.SlotOf(1), slots.SlotOf(5));
  EXPECT_NE(slots.SlotOf(5), slots.SlotOf(7));
}

TEST(ExpertSlotsTest, FavouritesStay) {
  ExpertSlots slots(8, 2);
  slots.Count({1, 1, 1, 2}, 2);
  slots.Take(1, Any);
  slots.Take(2, Any);
  slots.Count({3, 4}, 1);
  slots.Take(3, Any);
  EXPECT_EQ(slots.SlotOf(2), -1);
  EXPECT_GE(slots.SlotOf(1), 0);
  // Of equals, who was chosen first.
  slots.Count({1, 4}, 1);
  slots.Take(4, Any);
  EXPECT_EQ(slots.SlotOf(3), -1);
  EXPECT_GE(slots.SlotOf(1), 0);
}

TEST(ExpertSlotsTest, WhatWasChosenLongAgoCountsLess) {
  ExpertSlots slots(4, 2);
  slots.Count(std::vector<int32_t>(100, 0), 100);
  slots.Take(0, Any);
  // Half of that of 400 tokens, which are halved five times.
  slots.Count({1, 1, 1, 1, 1}, 5 * ExpertSlots::kHalfLife);
  slots.Take(1, Any);
  slots.Take(2, Any);
  EXPECT_EQ(slots.SlotOf(0), -1);
  EXPECT_GE(slots.SlotOf(1), 0);
}

TEST(ExpertSlotsTest, WhoMayNotGoStays) {
  ExpertSlots slots(4, 2);
  slots.Count({3, 3, 3}, 3);
  slots.Take(0, Any);
  slots.Take(3, Any);
  const int kept = slots.SlotOf(0);
  EXPECT_EQ(slots.Take(1, [](int) { return false; }), -1);
  EXPECT_EQ(slots.SlotOf(1), -1);
  slots.Take(1, [&](int slot) { return slot != kept; });
  EXPECT_EQ(slots.SlotOf(0), kept);
  EXPECT_EQ(slots.SlotOf(3), -1);
}

}  // namespace
}  // namespace weft
