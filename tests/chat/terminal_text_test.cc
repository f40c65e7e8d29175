// Columns, wrapping, and what must not reach a terminal.
#include "chat/terminal_text.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "text/printable.h"

namespace weft::chat {
namespace {

using Lines = std::vector<std::string>;

class TerminalText : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(UseUtf8Locale()); }
};

TEST_F(TerminalText, ColumnsAreThoseOfATerminal) {
  EXPECT_EQ(Columns("abc"), 3);
  EXPECT_EQ(Columns("\u65e5\u672c"), 4);
  EXPECT_EQ(Columns("\U0001F600"), 2);
  EXPECT_EQ(Columns("e\u0301"), 1);
  EXPECT_EQ(Columns("\u200bx\ufe0f"), 1);
}

TEST_F(TerminalText, MarksBelongToTheirCharacter) {
  const std::vector<Glyph> glyphs = Glyphs("e\u0301x");
  ASSERT_EQ(glyphs.size(), 2u);
  EXPECT_EQ(glyphs[0].text, "e\u0301");
  EXPECT_EQ(glyphs[0].end, 3u);
  EXPECT_EQ(glyphs[1].begin, 3u);
}

TEST_F(TerminalText, AnEmojiOfSeveralShowsAsSeveral) {
  const std::vector<Glyph> glyphs = Glyphs("\U0001F468\u200d\U0001F469");
  ASSERT_EQ(glyphs.size(), 2u);
  EXPECT_EQ(glyphs[0].text, "\U0001F468");
  EXPECT_EQ(glyphs[1].text, "\U0001F469");
}

TEST_F(TerminalText, MarksUponMarksEnd) {
  std::string text = "e";
  for (int i = 0; i < 50; ++i) text += "\u0301";
  const std::vector<Glyph> glyphs = Glyphs(text);
  ASSERT_EQ(glyphs.size(), 1u);
  EXPECT_EQ(glyphs[0].text.size(), 1u + 4 * 2);
  EXPECT_EQ(glyphs[0].end, text.size());
}

TEST_F(TerminalText, WrapsAtSpaces) {
  EXPECT_EQ(WrapText("the quick brown fox", 10),
            (Lines{"the quick", "brown fox"}));
  EXPECT_EQ(WrapText("exactly ten", 7), (Lines{"exactly", "ten"}));
  EXPECT_EQ(WrapText("", 10), (Lines{""}));
  EXPECT_EQ(WrapText("a\n\nb\n", 10), (Lines{"a", "", "b", ""}));
}

TEST_F(TerminalText, KeepsSpacesThatBeginALineOrStandInside) {
  EXPECT_EQ(WrapText("  x =  1", 20), (Lines{"  x =  1"}));
  EXPECT_EQ(WrapText("a\tb", 20), (Lines{"a   b"}));
  EXPECT_EQ(WrapText("\tb", 20), (Lines{"    b"}));
}

TEST_F(TerminalText, CutsLongWordsAndBesideWideCharacters) {
  EXPECT_EQ(WrapText("abcdefgh ij", 3), (Lines{"abc", "def", "gh", "ij"}));
  EXPECT_EQ(WrapText("\u65e5\u672c\u8a9e", 5),
            (Lines{"\u65e5\u672c", "\u8a9e"}));
  EXPECT_EQ(WrapText("ab\u65e5\u672c", 4), (Lines{"ab\u65e5", "\u672c"}));
}

TEST_F(TerminalText, FitLineCutsWithAnEllipsis) {
  EXPECT_EQ(FitLine("abcdef", 6), "abcdef");
  EXPECT_EQ(FitLine("abcdef", 4), "abc\u2026");
  EXPECT_EQ(FitLine("\u65e5\u672c\u8a9e", 4), "\u65e5\u2026");
  EXPECT_EQ(FitLine("a\nb", 9), "a b");
  EXPECT_EQ(FitLine("abc", 0), "");
}

// Any text, any width: no line is too wide, nothing but spaces is lost.
TEST_F(TerminalText, WrappingLosesNothing) {
  const Lines parts = {"a",
                       "word",
                       " ",
                       "  ",
                       "\n",
                       "\t",
                       "\u65e5",
                       "\U0001F600",
                       "e\u0301",
                       "\u200d",
                       "\u0301",
                       "\xff",
                       "longlonglonglong"};
  const auto letters = [](absl::string_view from) {
    std::string kept;
    for (const Glyph& glyph : Glyphs(from)) {
      if (glyph.text != " " && glyph.columns > 0) kept += glyph.text;
    }
    return kept;
  };
  std::minstd_rand random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = random() % 30; i > 0; --i) {
      text += parts[random() % parts.size()];
    }
    const int columns = 2 + random() % 20;
    std::string shown;
    for (const std::string& line : WrapText(text, columns)) {
      EXPECT_LE(Columns(line), columns) << text;
      EXPECT_EQ(Printable(line), line);
      EXPECT_EQ(line.find_first_of("\n\t"), std::string::npos);
      absl::StrAppend(&shown, line, "\n");
    }
    // A mark behind a space that a cut leaves out goes with it.
    if (text.find(" \u0301") == std::string::npos &&
        text.find("\u200d") == std::string::npos) {
      EXPECT_EQ(letters(shown), letters(text));
    }
    EXPECT_LE(Columns(FitLine(text, columns)), columns);
    size_t end = 0;
    for (const Glyph& glyph : Glyphs(text)) {
      EXPECT_EQ(glyph.begin, end);
      end = glyph.end;
    }
    EXPECT_EQ(end, end == 0 ? 0 : text.size());
  }
}

}  // namespace
}  // namespace weft::chat
