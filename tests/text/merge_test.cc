#include "text/merge.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, Merge>;

Merge Look(const Rules& rules, int32_t left, int32_t right) {
  const auto it = rules.find({left, right});
  return it == rules.end() ? Merge{} : it->second;
}

// The definition: the best pair anywhere, the leftmost among equals, again and
// again.
std::vector<int32_t> MergeSlowly(std::vector<int32_t> ids, const Rules& rules) {
  while (true) {
    Merge best;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merge merge = Look(rules, ids[i], ids[i + 1]);
      if (merge.rank < best.rank) {
        best = merge;
        at = i;
      }
    }
    if (best.rank == Merge::kNone) return ids;
    ids[at] = best.id;
    ids.erase(ids.begin() + at + 1);
  }
}

std::vector<int32_t> MergeFast(const std::vector<int32_t>& ids,
                               const Rules& rules, MergeWork& work) {
  work.Clear();
  for (size_t i = 0; i < ids.size(); ++i) work.Append(i, 1, ids[i]);
  MergeSymbols(
      work,
      [&](const MergeSymbol& left, const MergeSymbol& right) {
        return Look(rules, left.id, right.id);
      },
      [] { return false; });
  std::vector<int32_t> merged;
  uint32_t covered = 0;
  for (const MergeSymbol& symbol : work.symbols) {
    if (symbol.size == 0) continue;
    EXPECT_EQ(symbol.begin, covered);
    covered += symbol.size;
    merged.push_back(symbol.id);
  }
  EXPECT_EQ(covered, ids.size());
  return merged;
}

TEST(MergeSymbols, AgreesWithTheDefinitionOnRandomRules) {
  std::mt19937 random(1);
  MergeWork work;
  for (int round = 0; round < 400; ++round) {
    // Few symbols and many rules, some of equal rank, so that merges cascade.
    Rules rules;
    const int symbols = 2 + random() % 4;
    int32_t next_id = symbols;
    const bool equal_ranks = random() % 2 == 0;
    for (uint32_t rank = 0; rank < 12; ++rank) {
      const int32_t left = random() % next_id, right = random() % next_id;
      rules.try_emplace({left, right},
                        Merge{equal_ranks ? rank / 4 : rank, next_id++});
    }
    std::vector<int32_t> ids(random() % 40);
    for (int32_t& id : ids) id = random() % symbols;
    ASSERT_EQ(MergeFast(ids, rules, work), MergeSlowly(ids, rules));
  }
}

TEST(MergeSymbols, TakesNothingAndOneSymbol) {
  MergeWork work;
  EXPECT_TRUE(MergeFast({}, {}, work).empty());
  EXPECT_EQ(MergeFast({7}, {{{7, 7}, {0, 8}}}, work), std::vector<int32_t>{7});
}

}  // namespace
}  // namespace weft
