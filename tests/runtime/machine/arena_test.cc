#include "runtime/machine/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(Arena, IsAlignedZeroAndWritableToTheLastByte) {
  for (const bool huge_pages : {false, true}) {
    for (const int64_t bytes : {1, 4095, 4096, 4097, 5 << 20}) {
      auto arena = Arena::Create(bytes, "test", huge_pages);
      ASSERT_TRUE(arena.ok()) << arena.status();
      EXPECT_EQ(arena->bytes(), bytes);
      const uintptr_t alignment = huge_pages ? 2 << 20 : 4096;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->data()) % alignment, 0u);
      EXPECT_EQ(std::count(arena->data(), arena->data() + bytes, 0), bytes);
      arena->data()[bytes - 1] = 7;
    }
  }
}

TEST(Arena, MovesItsMemory) {
  Arena one = *Arena::Create(100, "test");
  uint8_t* data = one.data();
  data[99] = 5;
  Arena two = std::move(one);
  EXPECT_EQ(two.data(), data);
  two = *Arena::Create(200, "test");
  EXPECT_EQ(two.bytes(), 200);
}

TEST(Arena, OfNoBytesHasNoMemory) {
  auto arena = Arena::Create(0, "test");
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->data(), nullptr);
}

TEST(Arena, RefusesWhatCannotBe) {
  for (const int64_t bytes : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(
        std::string(Arena::Create(bytes, "KV cache").status().message()),
        HasSubstr("KV cache"));
  }
  // More than a 47-bit address space.
  const auto huge = Arena::Create(int64_t{1} << 50, "KV cache");
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(huge.status().message()),
              HasSubstr("1125899906842624 bytes"));
}

TEST(WhyNoHugePages, IsWhatTheSystemOrTheProcessSays) {
  EXPECT_EQ(WhyNoHugePages("always [madvise] never"), "");
  EXPECT_EQ(WhyNoHugePages("[always] madvise never"), "");
  EXPECT_THAT(WhyNoHugePages("always madvise [never]"),
              HasSubstr("switched off"));
  EXPECT_THAT(WhyNoHugePages(""), HasSubstr("switched off"));
}

TEST(AdviseHugePages, LeavesRangesWithoutAWholeBlockAlone) {
  Arena arena = *Arena::Create(8 << 20, "test", true);
  EXPECT_FALSE(AdviseHugePages(arena.data() + 1, (4 << 20) - 2 - (2 << 20)));
  EXPECT_FALSE(AdviseHugePages(arena.data(), 0));
  EXPECT_FALSE(AdviseHugePages(arena.data(), -5));
}

}  // namespace
}  // namespace weft
