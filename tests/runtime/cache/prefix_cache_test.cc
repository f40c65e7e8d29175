// Which pages are found again, and that none is lost, given out twice, or
// changed while shared.
#include "runtime/cache/prefix_cache.h"

#include <algorithm>
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

// Says that tokens [begin, tokens.size()) are computed.
void Compute(PrefixCache* prefixes, int32_t slot, uint64_t scope,
             const std::vector<int32_t>& tokens, int64_t begin) {
  const int64_t size = static_cast<int64_t>(tokens.size());
  for (int64_t end = begin; end < size;) {
    end = std::min(size, (end / kPageTokens + 1) * kPageTokens);
    EXPECT_TRUE(
        prefixes->Add(slot, scope, absl::MakeConstSpan(tokens).first(end))
            .ok());
  }
}

// Runs a sequence as a scheduler does. Returns how many tokens were found.
int64_t RunSequence(KvCache* cache, PrefixCache* prefixes, int32_t slot,
                    uint64_t scope, const std::vector<int32_t>& tokens) {
  const auto whole = prefixes->Attach(slot, scope, tokens);
  EXPECT_TRUE(whole.ok());
  const auto copied = prefixes->AttachCopy(slot, scope, tokens);
  EXPECT_TRUE(copied.ok());
  const int64_t size = static_cast<int64_t>(tokens.size());
  prefixes->MakeFree(PagesForTokens(size) - cache->pool().held_pages(slot));
  EXPECT_TRUE(cache->Reserve(slot, size).ok());
  Compute(prefixes, slot, scope, tokens, *whole + *copied);
  return *whole + *copied;
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
  // The last page, of 8 tokens, stays too.
  EXPECT_EQ(cache->pool().idle_pages(), 4);
  EXPECT_EQ(cache->pool().free_pages(), 6);
}

TEST(PrefixCacheTest, CopiesWhatAgreesOfAPageButNeverTheLastToken) {
  const auto cache = MakeCache(10, 2, 5);
  PrefixCache prefixes(cache.get());
  const std::vector<int32_t> tokens = {5, 6, 7, 8, 9};
  RunSequence(cache.get(), &prefixes, 0, 0, tokens);
  const auto copied = [&](const std::vector<int32_t>& asked,
                          uint64_t scope = 0) {
    const int32_t free_pages = cache->pool().free_pages();
    const auto found = prefixes.AttachCopy(1, scope, asked);
    EXPECT_TRUE(found.ok());
    EXPECT_EQ(cache->pool().held_pages(1), *found > 0);
    EXPECT_TRUE(prefixes.Release(1).ok());
    EXPECT_EQ(cache->pool().free_pages(), free_pages);
    return *found;
  };
  // While the sequence runs, and when it has ended.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(copied({}), 0);
    EXPECT_EQ(copied({5}), 0);
    EXPECT_EQ(copied({5, 6}), 1);
    EXPECT_EQ(copied(tokens), 4);
    EXPECT_EQ(copied({5, 6, 7, 8, 9, 10}), 5);
    EXPECT_EQ(copied({5, 6, 7, 0, 9, 10}), 3);
    EXPECT_EQ(copied({6, 7, 8}), 0);
    EXPECT_EQ(copied(tokens, 1), 0);
    ASSERT_TRUE(prefixes.Release(0).ok());
  }
  // Of a full page as well, behind whole pages.
  RunSequence(cache.get(), &prefixes, 0, 0, Tokens(1, 192));
  std::vector<int32_t> other = Tokens(1, 192);
  other[150] = 0;
  EXPECT_EQ(RunSequence(cache.get(), &prefixes, 1, 0, other), 150);
  EXPECT_EQ(cache->pool().page(0, 1), cache->pool().page(1, 1));
  EXPECT_NE(cache->pool().page(0, 2), cache->pool().page(1, 2));
}

TEST(PrefixCacheTest, APageWhoseTokensAnotherHoldsGoesAtOnce) {
  const auto cache = MakeCache(10, 2, 5);
  PrefixCache prefixes(cache.get());
  for (int64_t size : {20, 20, 10, 50, 64, 64, 30}) {
    RunSequence(cache.get(), &prefixes, 0, 0, Tokens(1, size));
    ASSERT_TRUE(prefixes.Release(0).ok());
    EXPECT_EQ(cache->pool().idle_pages(), 1) << size;
    EXPECT_EQ(cache->pool().free_pages(), 9) << size;
  }
  EXPECT_EQ(*prefixes.AttachCopy(0, 0, Tokens(1, 64)), 63);
  // One that is held stays.
  RunSequence(cache.get(), &prefixes, 1, 0, Tokens(2, 20));
  ASSERT_TRUE(prefixes.Release(0).ok());
  RunSequence(cache.get(), &prefixes, 0, 0, Tokens(2, 30));
  ASSERT_TRUE(prefixes.Release(0).ok());
  EXPECT_EQ(cache->pool().held_pages(1), 1);
  EXPECT_EQ(cache->pool().idle_pages(), 2);
  ASSERT_TRUE(prefixes.Release(1).ok());
  EXPECT_EQ(cache->pool().idle_pages(), 2);
  EXPECT_EQ(cache->pool().free_pages(), 8);
}

TEST(PrefixCacheTest, ACopyTakesTheLongestUnusedPageAndAtLastItsOwnSource) {
  const auto cache = MakeCache(2, 2, 2);
  PrefixCache prefixes(cache.get());
  uint8_t* const bytes = cache->states()[0].pages;
  for (const int32_t first : {1, 2}) {
    RunSequence(cache.get(), &prefixes, 0, 0, Tokens(first, 40));
    std::fill_n(bytes + cache->pool().page(0, 0) * 64, 40, first);
    ASSERT_TRUE(prefixes.Release(0).ok());
  }
  EXPECT_EQ(cache->pool().free_pages(), 0);
  // The page of 2s goes, though used later than that of 1s before.
  EXPECT_EQ(*prefixes.AttachCopy(0, 0, Tokens(1, 30)), 29);
  EXPECT_EQ(std::count(bytes, bytes + 128, 1), 80);
  EXPECT_EQ(cache->pool().idle_pages(), 1);
  EXPECT_EQ(*prefixes.AttachCopy(1, 0, Tokens(2, 30)), 0);
  // No other is left but the source.
  EXPECT_EQ(*prefixes.AttachCopy(1, 0, Tokens(1, 20)), 19);
  EXPECT_EQ(std::count(bytes, bytes + 128, 1), 80);
  EXPECT_EQ(cache->pool().idle_pages(), 0);
  ASSERT_TRUE(prefixes.Release(0).ok());
  ASSERT_TRUE(prefixes.Release(1).ok());
  EXPECT_EQ(cache->pool().free_pages(), 2);
  // None that is held is given up.
  RunSequence(cache.get(), &prefixes, 0, 0, Tokens(1, 128));
  EXPECT_EQ(*prefixes.AttachCopy(1, 0, Tokens(1, 60)), 0);
  EXPECT_EQ(cache->pool().held_pages(1), 0);
}

TEST(PrefixCacheTest, AmongManyThatBeginAlikeTheUsedOnesAreFound) {
  const int32_t pages = 2 * PrefixCache::kMostLookedAt;
  const auto cache = MakeCache(pages + 1, 2, 2);
  PrefixCache prefixes(cache.get());
  const auto run = [&](int32_t second) {
    const auto found =
        RunSequence(cache.get(), &prefixes, 0, 0, {1, second, 3, 4});
    EXPECT_TRUE(prefixes.Release(0).ok());
    return found;
  };
  for (int32_t i = 0; i < pages; ++i) {
    EXPECT_EQ(run(i), i == 0 ? 0 : 1);
    EXPECT_EQ(run(0), 3);
  }
  EXPECT_EQ(run(pages - 1), 3);
  // Not looked at: it was used too long ago.
  EXPECT_EQ(run(1), 1);
}

TEST(PrefixCacheTest, SequencesThatRunSideBySideEndUpWithOnePage) {
  const auto cache = MakeCache(10, 2, 5);
  PrefixCache prefixes(cache.get());
  const std::vector<int32_t> tokens = Tokens(1, 150);
  // Both begin before either has a page to share.
  ASSERT_TRUE(cache->Reserve(0, 150).ok());
  ASSERT_TRUE(cache->Reserve(1, 150).ok());
  EXPECT_EQ(cache->pool().free_pages(), 4);
  for (int64_t end : {40, 64, 128}) {
    for (int32_t slot : {0, 1}) {
      ASSERT_TRUE(
          prefixes.Add(slot, 0, absl::MakeConstSpan(tokens).subspan(0, end))
              .ok());
    }
  }
  EXPECT_EQ(cache->pool().free_pages(), 6);
  EXPECT_EQ(cache->pool().idle_pages(), 0);
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
  EXPECT_EQ(RunSequence(cache.get(), &prefixes, 0, 0, a), 129);
  ASSERT_TRUE(prefixes.Release(0).ok());
  prefixes.MakeFree(2);
  EXPECT_EQ(cache->pool().free_pages(), 2);
  EXPECT_EQ(prefixes.Find(0, a).pages, 2);
  EXPECT_EQ(prefixes.Find(0, b).pages, 1);
  prefixes.MakeFree(4);
  EXPECT_EQ(prefixes.Find(0, a).pages, 2);
  EXPECT_EQ(prefixes.Find(0, b).pages, 0);
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
  EXPECT_EQ(cache->pool().free_pages(), 5);
}

// A sequence whose keys are one byte for each position, which tells all tokens
// up to it.
struct MarkedSequence {
  bool runs = false;
  uint64_t scope = 0;
  std::vector<int32_t> tokens;
  std::vector<uint8_t> marks;
  uint32_t hash = 0;

  void Push(int32_t token) {
    if (marks.empty()) hash = static_cast<uint32_t>(scope);
    hash = (hash + token + 1) * 0x9e3779b1u;
    tokens.push_back(token);
    marks.push_back(static_cast<uint8_t>(hash >> 24));
  }
};

// Sequences that begin, grow and end; few tokens, so that they begin alike or
// part anywhere, and different ones meet in one bucket all the time.
TEST(PrefixCacheTest, RandomUseNeverMixesSequences) {
  constexpr int32_t kPages = 12, kSlots = 4;
  std::mt19937 random(1);
  const auto cache = MakeCache(kPages, kSlots, 5);
  const PagePool& pool = cache->pool();
  PrefixCache prefixes(cache.get());
  MarkedSequence sequences[kSlots];
  const auto byte = [&](int32_t slot, int64_t position) -> uint8_t& {
    return cache->states()[0]
        .pages[pool.page(slot, position / kPageTokens) * kPageTokens +
               position % kPageTokens];
  };
  int64_t whole_hits = 0, copied = 0, given_up = 0;
  for (int round = 0; round < 20000; ++round) {
    const int32_t slot = static_cast<int32_t>(random() % kSlots);
    MarkedSequence& sequence = sequences[slot];
    if (sequence.runs && random() % 3 == 0) {
      ASSERT_TRUE(prefixes.Release(slot).ok());
      sequence = {};
    } else {
      const int64_t old_size = static_cast<int64_t>(sequence.tokens.size());
      int64_t size = old_size + 1 + random() % 40, computed = old_size;
      if (!sequence.runs) {
        sequence.scope = random() % 4;
        size = 1 + random() % 320;
      }
      size = std::min<int64_t>(size, 320);
      for (int64_t i = old_size; i < size; ++i) {
        sequence.Push(i % 23 == 0 ? random() % 2 : 7);
      }
      if (!sequence.runs) {
        sequence.runs = true;
        const auto whole =
            prefixes.Attach(slot, sequence.scope, sequence.tokens);
        ASSERT_TRUE(whole.ok());
        const auto copy =
            prefixes.AttachCopy(slot, sequence.scope, sequence.tokens);
        ASSERT_TRUE(copy.ok());
        whole_hits += *whole > 0;
        copied += *copy > 0;
        computed = *whole + *copy;
        ASSERT_LT(computed, size);
      }
      const int32_t idle = pool.idle_pages();
      prefixes.MakeFree(PagesForTokens(size) - pool.held_pages(slot));
      given_up += idle - pool.idle_pages();
      if (cache->Reserve(slot, size).ok()) {
        for (int64_t i = computed; i < size; ++i) {
          byte(slot, i) = sequence.marks[i];
        }
        Compute(&prefixes, slot, sequence.scope, sequence.tokens, computed);
      } else {
        ASSERT_TRUE(prefixes.Release(slot).ok());
        sequence = {};
      }
    }
    // What was found is what would have been computed, and nobody's keys have
    // changed.
    std::map<int32_t, int> holders;
    for (int32_t s = 0; s < kSlots; ++s) {
      for (size_t i = 0; i < sequences[s].marks.size(); ++i) {
        ASSERT_EQ(byte(s, i), sequences[s].marks[i]) << s << " " << i;
      }
      for (int64_t i = 0; i < pool.held_pages(s); ++i) {
        ++holders[pool.page(s, i)];
      }
    }
    for (const auto& [page, count] : holders) {
      ASSERT_EQ(pool.holders(page), count);
    }
    ASSERT_EQ(static_cast<int32_t>(holders.size()) + pool.free_pages() +
                  pool.idle_pages(),
              kPages);
  }
  EXPECT_GT(whole_hits, 500);
  EXPECT_GT(copied, 500);
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
