#include "runtime/cache/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "base/allocation_counter.h"
#include "runtime/machine/memory.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<KvCache> MakeCache(const KvCacheShape& shape) {
  auto cache = KvCache::Create(shape);
  EXPECT_TRUE(cache.ok()) << cache.status();
  return *std::move(cache);
}

// Where a kernel finds position 0 of a position's page.
uint8_t* PageOf(const KvState& state, int32_t slot, int64_t position) {
  const int32_t page =
      state
          .page_table[slot * state.pages_per_sequence + position / kPageTokens];
  return state.pages + page * state.page_bytes;
}

TEST(PagePool, GivesAPageForEvery64Tokens) {
  PagePool pool(10, 2, 8);
  EXPECT_TRUE(pool.Reserve(0, 0).ok());
  EXPECT_EQ(pool.free_pages(), 10);
  EXPECT_TRUE(pool.Reserve(0, 1).ok());
  EXPECT_TRUE(pool.Reserve(0, 64).ok());
  EXPECT_EQ(pool.held_pages(0), 1);
  EXPECT_TRUE(pool.Reserve(1, 65).ok());
  EXPECT_TRUE(pool.Reserve(0, 129).ok());
  EXPECT_THAT(
      std::vector<int32_t>(pool.table(), pool.table() + 16),
      ElementsAre(0, 3, 4, -1, -1, -1, -1, -1, 1, 2, -1, -1, -1, -1, -1, -1));
  // Asking for less keeps what is there.
  EXPECT_TRUE(pool.Reserve(0, 1).ok());
  EXPECT_EQ(pool.held_pages(0), 3);
  EXPECT_EQ(pool.free_pages(), 5);
}

TEST(PagePool, TruncateKeepsThePageThatIsPartlyUsed) {
  PagePool pool(4, 1, 4);
  ASSERT_TRUE(pool.Reserve(0, 256).ok());
  ASSERT_TRUE(pool.Truncate(0, 65).ok());
  EXPECT_EQ(pool.held_pages(0), 2);
  ASSERT_TRUE(pool.Truncate(0, 64).ok());
  EXPECT_EQ(pool.held_pages(0), 1);
  ASSERT_TRUE(pool.Truncate(0, 1000).ok());
  EXPECT_EQ(pool.held_pages(0), 1);
  ASSERT_TRUE(pool.Release(0).ok());
  EXPECT_EQ(pool.free_pages(), 4);
  EXPECT_EQ(pool.page(0, 0), -1);
}

TEST(PagePool, AFullPoolSaysWhatIsNeededAndChangesNothing) {
  PagePool pool(4, 3, 4);
  ASSERT_TRUE(pool.Reserve(0, 3 * 64).ok());
  ASSERT_TRUE(pool.Reserve(1, 1).ok());
  const absl::Status full = pool.Reserve(1, 200);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("slot 1: needs 3 more pages of 64 tokens, 0 of 4"));
  EXPECT_EQ(pool.held_pages(1), 1);
  // What the slot has already goes on working.
  EXPECT_TRUE(pool.Reserve(1, 64).ok());
  ASSERT_TRUE(pool.Release(0).ok());
  EXPECT_TRUE(pool.Reserve(1, 200).ok());
}

TEST(PagePool, NamesWhatIsOutOfRange) {
  PagePool pool(100, 2, 4);
  EXPECT_THAT(std::string(pool.Reserve(2, 1).message()), HasSubstr("slot 2"));
  EXPECT_THAT(std::string(pool.Release(-1).message()), HasSubstr("slot -1"));
  EXPECT_THAT(std::string(pool.Truncate(7, 1).message()), HasSubstr("slot 7"));
  EXPECT_FALSE(pool.Reserve(0, -1).ok());
  const absl::Status too_long = pool.Reserve(0, 257);
  EXPECT_EQ(too_long.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(too_long.message()),
              HasSubstr("257 tokens, the context holds 256"));
  EXPECT_FALSE(pool.Reserve(0, std::numeric_limits<int64_t>::max()).ok());
  EXPECT_EQ(pool.free_pages(), 100);
}

// No page has two owners and none is lost, whatever the order of calls.
TEST(PagePool, RandomUseKeepsEveryPageOnce) {
  std::mt19937 random(1);
  PagePool pool(17, 5, 6);
  const int64_t before = AllocationCount();
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const int32_t slot = static_cast<int32_t>(random() % 5);
    const int64_t tokens = random() % 385;
    const int64_t held = pool.held_pages(slot);
    switch (random() % 3) {
      case 0:
        if (pool.Reserve(slot, tokens).ok()) {
          ASSERT_EQ(pool.held_pages(slot),
                    std::max(held, PagesForTokens(tokens)));
        } else {
          ++refused;
          ASSERT_EQ(pool.held_pages(slot), held);
        }
        break;
      case 1:
        ASSERT_TRUE(pool.Truncate(slot, tokens).ok());
        break;
      case 2:
        ASSERT_TRUE(pool.Release(slot).ok());
        break;
    }
    uint32_t owned = 0;
    int count = 0;
    for (int32_t s = 0; s < 5; ++s) {
      for (int64_t i = 0; i < 6; ++i) {
        const int32_t page = pool.page(s, i);
        ASSERT_EQ(page >= 0, i < pool.held_pages(s));
        if (page < 0) continue;
        ASSERT_LT(page, 17);
        ASSERT_EQ(owned & (1u << page), 0u);
        owned |= 1u << page;
        ++count;
      }
    }
    ASSERT_EQ(pool.free_pages(), 17 - count);
  }
  EXPECT_GT(refused, 100);
  // Only refusals, for their messages.
  EXPECT_LE(AllocationCount() - before, 10 * refused);
}

TEST(PagePool, TakesNoMemoryAfterConstruction) {
  PagePool pool(64, 4, 16);
  const int64_t before = AllocationCount();
  for (int round = 0; round < 100; ++round) {
    for (int32_t slot = 0; slot < 4; ++slot) {
      if (!pool.Reserve(slot, 1 + 10 * round).ok()) FAIL();
    }
    if (!pool.Truncate(round % 4, 5 * round).ok()) FAIL();
    if (!pool.Release((round + 1) % 4).ok()) FAIL();
  }
  EXPECT_EQ(AllocationCount(), before);
}

TEST(KvCache, StatesHaveTheirOwnPartsAndOneTable) {
  // Two layers; the second's pages have another size.
  const KvCacheShape shape = {{128, 192, 4096, 64}, 5, 2, 3};
  auto cache = MakeCache(shape);
  EXPECT_EQ(cache->bytes(), *KvCacheBytes(shape));
  EXPECT_GE(cache->bytes(), 5 * (128 + 192 + 4096 + 64));
  ASSERT_EQ(cache->states().size(), 4u);
  ASSERT_TRUE(cache->Reserve(0, 70).ok());
  ASSERT_TRUE(cache->Reserve(1, 150).ok());
  // Every page of every state gets its own mark; none overwrites another.
  uint8_t mark = 1;
  for (const KvState& state : cache->states()) {
    EXPECT_EQ(state.page_table, cache->pool().table());
    EXPECT_EQ(state.pages_per_sequence, 3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(state.pages) % 64, 0u);
    for (const auto& [slot, tokens] : {std::pair{0, 70}, std::pair{1, 150}}) {
      for (int position = 0; position < tokens; position += kPageTokens) {
        std::memset(PageOf(state, slot, position), mark++, state.page_bytes);
      }
    }
  }
  mark = 1;
  for (const KvState& state : cache->states()) {
    for (const auto& [slot, tokens] : {std::pair{0, 70}, std::pair{1, 150}}) {
      for (int position = 0; position < tokens; position += kPageTokens) {
        const uint8_t* page = PageOf(state, slot, position);
        EXPECT_EQ(std::count(page, page + state.page_bytes, mark),
                  state.page_bytes);
        ++mark;
      }
    }
  }
}

TEST(KvCache, ASecondOwnerSeesZerosAndTheFirstKeepsItsRows) {
  auto cache = MakeCache({{64, 128}, 3, 2, 3});
  ASSERT_TRUE(cache->Reserve(0, 3 * 64).ok());
  for (const KvState& state : cache->states()) {
    // 0xff bytes are NaN in every float type.
    std::memset(state.pages, 0xff, 3 * state.page_bytes);
  }
  ASSERT_TRUE(cache->Truncate(0, 64).ok());
  ASSERT_TRUE(cache->Reserve(1, 100).ok());
  for (const KvState& state : cache->states()) {
    for (const int position : {0, 64}) {
      const uint8_t* page = PageOf(state, 1, position);
      EXPECT_EQ(std::count(page, page + state.page_bytes, 0), state.page_bytes);
    }
    const uint8_t* kept = PageOf(state, 0, 0);
    EXPECT_EQ(std::count(kept, kept + state.page_bytes, 0xff),
              state.page_bytes);
  }
  // Asking again clears nothing that is held.
  *PageOf(cache->states()[0], 1, 64) = 9;
  ASSERT_TRUE(cache->Reserve(1, 128).ok());
  EXPECT_EQ(*PageOf(cache->states()[0], 1, 64), 9);
}

TEST(KvCache, ACopyHoldsWhatItsSourceDoesInEveryState) {
  auto cache = MakeCache({{64, 128}, 3, 2, 2});
  ASSERT_TRUE(cache->Reserve(0, 64).ok());
  for (const KvState& state : cache->states()) {
    std::memset(PageOf(state, 0, 0), 7, state.page_bytes);
  }
  ASSERT_TRUE(cache->Reserve(1, 1).ok());
  ASSERT_TRUE(cache->ReserveCopy(1, cache->pool().page(0, 0)).ok());
  EXPECT_EQ(cache->pool().held_pages(1), 2);
  const auto count = [&](int32_t slot, int64_t position, int value) {
    int64_t all = 0;
    for (const KvState& state : cache->states()) {
      const uint8_t* page = PageOf(state, slot, position);
      all += std::count(page, page + state.page_bytes, value);
    }
    return all;
  };
  EXPECT_EQ(count(1, 64, 7), 192);
  EXPECT_EQ(count(1, 0, 0), 192);
  // It is a page like any other: cleared for whoever gets it next.
  ASSERT_TRUE(cache->Release(1).ok());
  ASSERT_TRUE(cache->Reserve(0, 128).ok());
  ASSERT_TRUE(cache->Reserve(1, 64).ok());
  EXPECT_EQ(count(0, 64, 0) + count(1, 0, 0), 2 * 192);
  EXPECT_EQ(cache->ReserveCopy(1, 0).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(cache->ReserveCopy(2, 0).ok());
  // A source that has just become free is given as it is.
  const int32_t source = cache->pool().page(0, 0);
  ASSERT_TRUE(cache->Release(0).ok());
  ASSERT_TRUE(cache->ReserveCopy(0, source).ok());
  EXPECT_EQ(cache->pool().page(0, 0), source);
  EXPECT_EQ(count(0, 0, 7), 192);
}

TEST(KvCache, ErrorsOfThePoolComeThrough) {
  auto cache = MakeCache({{64}, 2, 2, 4});
  EXPECT_EQ(cache->Reserve(0, 200).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(cache->Reserve(2, 1).ok());
  EXPECT_FALSE(cache->Reserve(-1, 1).ok());
}

TEST(KvCache, TouchesNoMemoryThatNobodyUses) {
  const int64_t before = PeakResidentBytes();
  auto cache = MakeCache({{1 << 20, 1 << 20}, 256, 4, 64});
  ASSERT_EQ(cache->bytes(), int64_t{512} << 20);
  ASSERT_TRUE(cache->Reserve(0, 64 * 64).ok());
  EXPECT_LT(PeakResidentBytes() - before, int64_t{64} << 20);
}

TEST(KvCacheBytes, RefusesShapesThatCannotBe) {
  const auto message = [](KvCacheShape shape) {
    EXPECT_FALSE(KvCache::Create(shape).ok());
    return std::string(KvCacheBytes(shape).status().message());
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(message({{64}, 0, 1, 1}), HasSubstr("pages: 0"));
  EXPECT_THAT(message({{64}, int64_t{1} << 31, 1, 1}),
              HasSubstr("pages: 2147"));
  EXPECT_THAT(message({{64}, 1, 0, 1}), HasSubstr("slots: 0"));
  EXPECT_THAT(message({{64}, 1, 1, 0}), HasSubstr("pages per sequence: 0"));
  EXPECT_THAT(message({{64}, 1, 2, int64_t{1} << 30}),
              HasSubstr("pages per sequence"));
  EXPECT_THAT(message({{64, 0}, 1, 1, 1}), HasSubstr("bytes per page: 0"));
  EXPECT_THAT(message({{100}, 1, 1, 1}), HasSubstr("bytes per page: 100"));
  EXPECT_THAT(message({{kMax / 64 * 64}, 2, 1, 1}), HasSubstr("fit into 2^56"));
  EXPECT_THAT(message({{int64_t{1} << 55, int64_t{1} << 55, 64}, 1, 1, 1}),
              HasSubstr("fit into 2^56"));
}

TEST(KvCacheBytes, OfAModelWithoutStatesIsNothing) {
  EXPECT_EQ(*KvCacheBytes({{}, 4, 1, 4}), 0);
}

}  // namespace
}  // namespace weft
