// Which pages are found again, and that none is lost, given out twice, or
// changed while shared.
#include "runtime/prefix_cache.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "base/allocation_counter.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

std::unique_ptr<KvCache> MakeCache(int64_t pages, int32_t slots,
                                   int64_t pages_per_sequence) {
  auto cache = KvCache::Create({{64}, pages, slots, pages_per_sequence});
  EXPECT_TRUE(cache.ok()) << cache.status();
  return *std::move(cache);
}

std::vector<int32_t> Tokens(int32_t first, int64_t count) {
  std::vector<int32_t> tokens(count);
  for (int64_t i = 0; i < count; ++i) {
    tokens[i] = first + static_cast<int32_t>(i / kPageTokens);
  }
  return tokens;
}

// Runs a sequence as a scheduler does. Returns how many tokens were found.
int64_t RunSequence(KvCache* cache, PrefixCache* prefixes, int32_t slot,
                    uint64_t scope, const std::vector<int32_t>& tokens) {
  const auto found = prefixes->Attach(slot, scope, tokens);
  EXPECT_TRUE(found.ok());
  const int64_t size = static_cast<int64_t>(tokens.size());
  prefixes->MakeFree(PagesForTokens(size) - *found / kPageTokens);
  EXPECT_TRUE(cache->Reserve(slot, size).ok());
  for (int64_t end = *found + kPageTokens; end <= size; end += kPageTokens) {
    EXPECT_TRUE(
        prefixes->Add(slot, scope, absl::MakeConstSpan(tokens).subspan(0, end))
            .ok());
  }
  return *found;
}

TEST(PrefixCacheTest, FindsWholePagesButNeverTheLastToken) {
  const auto cache = MakeCache(10, 2, 5);
  PrefixCache prefixes(cache.get());
  EXPECT_EQ(RunSequence(cache.get(), &prefixes, 0, 0, Tokens(1, 200)), 0);
  const auto find = [&](int64_t count) {
    return prefixes.Find(0, Tokens(1, count)).pages;
  };
  EXPECT_EQ(find(0), 0);
  EXPECT_EQ(find(64), 0);
  EXPECT_EQ(find(65), 1);
  EXPECT_EQ(find(128), 1);
  EXPECT_EQ(find(193), 3);
  EXPECT_EQ(find(300), 3);
  EXPECT_EQ(prefixes.Find(0, Tokens(2, 200)).pages, 0);
  EXPECT_EQ(prefixes.Find(1, Tokens(1, 200)).pages, 0);
  EXPECT_EQ(prefixes.Find(0, Tokens(1, 200)).idle, 0);
  ASSERT_TRUE(prefixes.Release(0).ok());
  EXPECT_EQ(prefixes.Find(0, Tokens(1, 200)).idle, 3);
  EXPECT_EQ(cache->pool().idle_pages(), 3);
  EXPECT_EQ(cache->pool().free_pages(), 7);
}

TEST(PrefixCacheTest, SequencesThatRunSideBySideEndUpWithOnePage) {
  const auto cache = MakeCache(10, 2, 5);
  PrefixCache prefixes(cache.get());
  const std::vector<int32_t> tokens = Tokens(1, 150);
  // Both begin before either has a page to share.
  ASSERT_TRUE(cache->Reserve(0, 150).ok());
  ASSERT_TRUE(cache->Reserve(1, 150).ok());
  EXPECT_EQ(cache->pool().free_pages(), 4);
  for (int64_t end : {64, 128}) {
    for (int32_t slot : {0, 1}) {
      ASSERT_TRUE(
          prefixes.Add(slot, 0, absl::MakeConstSpan(tokens).subspan(0, end))
              .ok());
    }
  }
  EXPECT_EQ(cache->pool().free_pages(), 6);
  EXPECT_EQ(cache->pool().page(0, 1), cache->pool().page(1, 1));
  EXPECT_NE(cache->pool().page(0, 2), cache->pool().page(1, 2));
  EXPECT_EQ(cache->pool().holders(cache->pool().page(0, 0)), 2);
  // A page that is shared is not cut into.
  EXPECT_FALSE(cache->Truncate(0, 100).ok());
  EXPECT_TRUE(cache->Truncate(0, 130).ok());
}

TEST(PrefixCacheTest, GivesUpTheLongestUnusedFirstAndLastPagesBeforeFirst) {
  const auto cache = MakeCache(6, 2, 5);
  PrefixCache prefixes(cache.get());
  const std::vector<int32_t> a = Tokens(100, 130), b = Tokens(200, 130);
  for (const auto& tokens : {a, b}) {
    RunSequence(cache.get(), &prefixes, 0, 0, tokens);
    ASSERT_TRUE(prefixes.Release(0).ok());
  }
  // a is used again, so b goes first, from its end.
  EXPECT_EQ(RunSequence(cache.get(), &prefixes, 0, 0, a), 128);
  ASSERT_TRUE(prefixes.Release(0).ok());
  prefixes.MakeFree(3);
  EXPECT_EQ(cache->pool().free_pages(), 3);
  EXPECT_EQ(prefixes.Find(0, a).pages, 2);
  EXPECT_EQ(prefixes.Find(0, b).pages, 1);
  prefixes.MakeFree(5);
  EXPECT_EQ(prefixes.Find(0, a).pages, 1);
  EXPECT_EQ(prefixes.Find(0, b).pages, 0);
  // Pages that are held stay, however many are wanted.
  EXPECT_EQ(RunSequence(cache.get(), &prefixes, 0, 0, a), 64);
  prefixes.MakeFree(100);
  EXPECT_EQ(prefixes.Find(0, a).pages, 2);
  EXPECT_EQ(cache->pool().free_pages(), 3);
}

TEST(PrefixCacheTest, ForgetGivesUpAScope) {
  const auto cache = MakeCache(8, 2, 5);
  PrefixCache prefixes(cache.get());
  for (uint64_t scope : {1, 2}) {
    RunSequence(cache.get(), &prefixes, 0, scope, Tokens(1, 130));
    ASSERT_TRUE(prefixes.Release(0).ok());
  }
  prefixes.Forget(1);
  EXPECT_EQ(prefixes.Find(1, Tokens(1, 130)).pages, 0);
  EXPECT_EQ(prefixes.Find(2, Tokens(1, 130)).pages, 2);
  EXPECT_EQ(cache->pool().free_pages(), 6);
}

// Against a model that remembers what every page holds. Few buckets and many
// alike tokens, so that different prefixes meet in one bucket all the time.
TEST(PrefixCacheTest, RandomUseNeverMixesSequences) {
  constexpr int32_t kPages = 12, kSlots = 4;
  std::mt19937 random(1);
  const auto cache = MakeCache(kPages, kSlots, 5);
  PrefixCache prefixes(cache.get());
  // By page: scope and all tokens up to its end, as long as it is not given
  // out again.
  std::vector<std::pair<uint64_t, std::vector<int32_t>>> content(kPages);
  std::vector<bool> busy(kSlots, false);
  int64_t hits = 0, given_up = 0;
  for (int round = 0; round < 20000; ++round) {
    const int32_t slot = static_cast<int32_t>(random() % kSlots);
    if (busy[slot]) {
      ASSERT_TRUE(prefixes.Release(slot).ok());
      busy[slot] = false;
    } else {
      const uint64_t scope = random() % 6;
      const int64_t size = 1 + random() % 320;
      std::vector<int32_t> tokens(size);
      for (int64_t i = 0; i < size; ++i) {
        tokens[i] = i % kPageTokens == 0 ? random() % 2 : 7;
      }
      const auto found = prefixes.Attach(slot, scope, tokens);
      ASSERT_TRUE(found.ok());
      ASSERT_LT(*found, size);
      hits += *found;
      for (int64_t end = kPageTokens; end <= *found; end += kPageTokens) {
        const int32_t page = cache->pool().page(slot, end / kPageTokens - 1);
        ASSERT_EQ(content[page].first, scope);
        ASSERT_EQ(content[page].second,
                  std::vector<int32_t>(tokens.begin(), tokens.begin() + end));
      }
      const int64_t more = PagesForTokens(size) - *found / kPageTokens;
      const int32_t idle = cache->pool().idle_pages();
      prefixes.MakeFree(more);
      given_up += idle - cache->pool().idle_pages();
      busy[slot] = true;
      if (cache->Reserve(slot, size).ok()) {
        for (int64_t end = *found + kPageTokens; end <= size;
             end += kPageTokens) {
          content[cache->pool().page(slot, end / kPageTokens - 1)] = {
              scope,
              std::vector<int32_t>(tokens.begin(), tokens.begin() + end)};
          ASSERT_TRUE(
              prefixes
                  .Add(slot, scope, absl::MakeConstSpan(tokens).subspan(0, end))
                  .ok());
        }
      }
    }
    std::map<int32_t, int> holders;
    for (int32_t s = 0; s < kSlots; ++s) {
      for (int64_t i = 0; i < cache->pool().held_pages(s); ++i) {
        ++holders[cache->pool().page(s, i)];
      }
    }
    for (const auto& [page, count] : holders) {
      ASSERT_EQ(cache->pool().holders(page), count);
    }
    ASSERT_EQ(static_cast<int32_t>(holders.size()) +
                  cache->pool().free_pages() + cache->pool().idle_pages(),
              kPages);
  }
  EXPECT_GT(hits, 1000);
  EXPECT_GT(given_up, 100);
}

TEST(PrefixCacheTest, TakesNoMemoryAfterConstruction) {
  const auto cache = MakeCache(6, 2, 5);
  PrefixCache prefixes(cache.get());
  const std::vector<std::vector<int32_t>> prompts = {
      Tokens(1, 200), Tokens(2, 300), Tokens(1, 260)};
  const int64_t before = AllocationCount();
  bool ok = true;
  for (int round = 0; round < 30; ++round) {
    RunSequence(cache.get(), &prefixes, 0, 0, prompts[round % 3]);
    ok = ok && prefixes.Release(0).ok();
  }
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace weft
