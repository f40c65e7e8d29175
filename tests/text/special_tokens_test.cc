#include "text/special_tokens.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(SpecialTokens, FindsTheFirstAndThereTheLongest) {
  SpecialTokens tokens;
  tokens.Add("<a>", 1);
  tokens.Add("<a><b>", 2);
  tokens.Add("<b>", 3);
  const absl::string_view text = "x<a><b><a><<b>";
  const struct {
    size_t from, begin, size;
    int32_t id;
  } cases[] = {{0, 1, 6, 2}, {2, 4, 3, 3}, {7, 7, 3, 1}, {10, 11, 3, 3}};
  for (const auto& c : cases) {
    const SpecialTokens::Match match = tokens.Find(text, c.from);
    EXPECT_EQ(match.begin, c.begin);
    EXPECT_EQ(match.size, c.size);
    EXPECT_EQ(match.id, c.id);
  }
  EXPECT_EQ(tokens.Find(text, 12).size, 0u);
}

TEST(SpecialTokens, KeepsTheFirstOfEqualTextsAndNoEmptyOne) {
  SpecialTokens tokens;
  tokens.Add("", 9);
  EXPECT_EQ(tokens.Find("abc", 0).size, 0u);
  tokens.Add("b", 1);
  tokens.Add("b", 2);
  EXPECT_EQ(tokens.Find("abc", 0).id, 1);
}

TEST(SpecialTokens, MatchesBytesOfAnyValue) {
  SpecialTokens tokens;
  tokens.Add(absl::string_view("\xFF\0", 2), 5);
  EXPECT_EQ(tokens.Find(absl::string_view("\xFF\xFF\0x", 4), 0).begin, 1u);
}

}  // namespace
}  // namespace weft
