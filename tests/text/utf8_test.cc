#include "text/utf8.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(Utf8, KeepsWellFormedTextOfEveryLength) {
  const std::string text = "a\u00E9\u20AC\U0001F999\U0010FFFF\uFFFD";
  EXPECT_EQ(ValidUtf8Prefix(text), text.size());
  EXPECT_EQ(RepairUtf8(text), text);
}

TEST(Utf8, ReplacesEachMaximalSubpartOnce) {
  struct Case {
    std::string bytes, repaired;
  };
  // The examples of the Unicode standard's tables 3-8 to 3-11, and rests.
  const Case cases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
       "A",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
       "A",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xF4\x91\x92\x93\xFF"
       "A\x80\xBF"
       "B",
       "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       "\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"x\xF0\x9F\xA6", "x\uFFFD"},
      {"\xE2\x82", "\uFFFD"},
  };
  for (const Case& c : cases) EXPECT_EQ(RepairUtf8(c.bytes), c.repaired);
}

TEST(Utf8, TellsUnfinishedFromIllFormed) {
  EXPECT_EQ(Utf8UnitAt("\xF0\x9F\xA6", 0).kind, Utf8Unit::kIncomplete);
  EXPECT_EQ(Utf8UnitAt("\xF0\x9F\xA6", 0).bytes, 3u);
  EXPECT_EQ(Utf8UnitAt("\xF0\x8F", 0).kind, Utf8Unit::kIllFormed);
  EXPECT_EQ(Utf8UnitAt("\xF5", 0).kind, Utf8Unit::kIllFormed);
  EXPECT_EQ(Utf8UnitAt("\xE2\x82\xAC", 1).kind, Utf8Unit::kIllFormed);
}

}  // namespace
}  // namespace weft
