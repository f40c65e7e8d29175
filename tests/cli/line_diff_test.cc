#include "cli/line_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "absl/strings/str_split.h"

namespace weft {
namespace {

using Lines = std::vector<absl::string_view>;

// Applies a diff as patch would, checking every line that must be there.
std::vector<std::string> Apply(const std::string& diff, const Lines& before) {
  std::vector<std::string> result;
  size_t at = 0;
  int lines_a = 0, lines_b = 0;
  for (absl::string_view line : absl::StrSplit(diff, '\n', absl::SkipEmpty())) {
    if (line.substr(0, 4) == "--- " || line.substr(0, 4) == "+++ ") continue;
    if (line[0] == '@') {
      EXPECT_EQ(lines_a, 0);
      EXPECT_EQ(lines_b, 0);
      int first = 0;
      lines_a = lines_b = 1;
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      std::sscanf(words[1].c_str(), "-%d,%d", &first, &lines_a);
      int unused;
      std::sscanf(words[2].c_str(), "+%d,%d", &unused, &lines_b);
      const size_t begin = lines_a == 0 ? first : first - 1;
      while (at < begin) result.emplace_back(before[at++]);
      EXPECT_EQ(lines_b == 0 ? unused : unused - 1,
                static_cast<int>(result.size()));
      continue;
    }
    if (line[0] != '+') {
      EXPECT_LT(at, before.size());
      EXPECT_EQ(before[at], line.substr(1));
      ++at;
      --lines_a;
    }
    if (line[0] != '-') {
      result.emplace_back(line.substr(1));
      --lines_b;
    }
  }
  while (at < before.size()) result.emplace_back(before[at++]);
  return result;
}

TEST(UnifiedDiff, OfEqualTextsIsEmpty) {
  EXPECT_EQ(UnifiedDiff({"a", "b"}, {"a", "b"}, "x", "y"), "");
  EXPECT_EQ(UnifiedDiff({}, {}, "x", "y"), "");
}

TEST(UnifiedDiff, HasThreeLinesOfContext) {
  EXPECT_EQ(UnifiedDiff({"1", "2", "3", "4", "5", "6", "7", "8", "9"},
                        {"1", "2", "3", "4", "five", "6", "7", "8", "9"}, "old",
                        "new"),
            "--- old\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n "
            "7\n 8\n");
}

TEST(UnifiedDiff, AppliedToTheOneTextGivesTheOther) {
  std::mt19937 random(7);
  const char* words[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (int round = 0; round < 500; ++round) {
    Lines before, after;
    const size_t n = random() % 60;
    for (size_t i = 0; i < n; ++i) before.push_back(words[random() % 8]);
    for (absl::string_view line : before) {
      const int dice = random() % 20;
      if (dice != 0) after.push_back(line);
      if (dice <= 1) after.push_back(words[random() % 8]);
    }
    const std::string diff = UnifiedDiff(before, after, "x", "y");
    const std::vector<std::string> result = Apply(diff, before);
    EXPECT_EQ(result, std::vector<std::string>(after.begin(), after.end()))
        << diff;
  }
}

TEST(UnifiedDiff, LeavesOutNoLineThatBothHaveInOrder) {
  // A shortest edit: one removed, one added, whatever repeats around them.
  const std::string diff = UnifiedDiff(
      {"x", "y", "x", "y", "x", "q"}, {"x", "y", "y", "x", "q", "x"}, "a", "b");
  EXPECT_EQ(std::count(diff.begin(), diff.end(), '-') - 4, 1) << diff;
}

}  // namespace
}  // namespace weft
