// Editing of the message.
#include "chat/line_editor.h"

#include <gtest/gtest.h>

#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

class Editing : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(UseUtf8Locale()); }

  // The text with the cursor as "|".
  std::string Seen() const {
    std::string text = editor_.text();
    return text.insert(editor_.cursor(), "|");
  }

  LineEditor editor_;
};

TEST_F(Editing, InsertsAndDeletesAtTheCursor) {
  editor_.Insert("helo");
  editor_.Left();
  editor_.Insert("l");
  EXPECT_EQ(Seen(), "hell|o");
  editor_.Backspace();
  EXPECT_EQ(Seen(), "hel|o");
  editor_.Delete();
  EXPECT_EQ(Seen(), "hel|");
  editor_.Delete();
  EXPECT_EQ(Seen(), "hel|");
}

TEST_F(Editing, NothingHappensAtTheEnds) {
  editor_.Backspace();
  editor_.Left();
  editor_.Right();
  editor_.Up();
  editor_.Down();
  editor_.DeleteWord();
  EXPECT_EQ(Seen(), "|");
}

TEST_F(Editing, AGlyphIsOneStep) {
  editor_.Insert("\u65e5e\u0301\U0001F600");
  editor_.Left();
  EXPECT_EQ(Seen(), "\u65e5e\u0301|\U0001F600");
  editor_.Backspace();
  EXPECT_EQ(Seen(), "\u65e5|\U0001F600");
  editor_.Delete();
  EXPECT_EQ(Seen(), "\u65e5|");
}

TEST_F(Editing, AGraphemeClusterIsOneStep) {
  const struct {
    const char* what;
    const char* text;
  } kClusters[] = {
      {"a family", "\U0001F468\u200D\U0001F469\u200D\U0001F467"},
      {"a skin tone", "\U0001F44B\U0001F3FD"},
      {"a flag", "\U0001F1F8\U0001F1EA"},
      {"jamo", "\u1112\u1161\u11ab"},
      {"a vowel sign with width", "\u0915\u093e"},
      {"a variation selector", "\u2764\uFE0F"},
  };
  for (const auto& cluster : kClusters) {
    SCOPED_TRACE(cluster.what);
    const std::string text = cluster.text;
    editor_.SetText("a" + text + text + "b");
    editor_.Left();
    editor_.Left();
    EXPECT_EQ(Seen(), "a" + text + "|" + text + "b");
    editor_.Backspace();
    EXPECT_EQ(Seen(), "a|" + text + "b");
    editor_.Right();
    EXPECT_EQ(Seen(), "a" + text + "|b");
    editor_.Left();
    editor_.Delete();
    EXPECT_EQ(Seen(), "a|b");
  }
}

TEST_F(Editing, FlagsAreCountedFromTheirBeginning) {
  const std::string flag = "\U0001F1F8\U0001F1EA";
  editor_.Insert(flag + flag + flag);
  editor_.Backspace();
  EXPECT_EQ(Seen(), flag + flag + "|");
}

TEST_F(Editing, UpAndDownStopAtGraphemeClusters) {
  const std::string family = "\U0001F468\u200D\U0001F469";  // four columns
  editor_.Insert("x" + family + "\nabc");
  editor_.Up();
  EXPECT_EQ(Seen(), "x|" + family + "\nabc");
}

TEST_F(Editing, Words) {
  editor_.Insert("one two  three");
  editor_.WordLeft();
  EXPECT_EQ(Seen(), "one two  |three");
  editor_.DeleteWord();
  EXPECT_EQ(Seen(), "one |three");
  editor_.WordRight();
  EXPECT_EQ(Seen(), "one three|");
}

TEST_F(Editing, LinesHaveStartsAndEnds) {
  editor_.Insert("first\nsecond\nthird");
  editor_.Up();
  EXPECT_EQ(Seen(), "first\nsecon|d\nthird");
  editor_.LineStart();
  EXPECT_EQ(Seen(), "first\n|second\nthird");
  editor_.Right();
  editor_.DeleteToLineEnd();
  EXPECT_EQ(Seen(), "first\ns|\nthird");
  editor_.DeleteToLineStart();
  EXPECT_EQ(Seen(), "first\n|\nthird");
  editor_.Down();
  EXPECT_EQ(Seen(), "first\n\n|third");
  editor_.LineEnd();
  EXPECT_EQ(Seen(), "first\n\nthird|");
}

TEST_F(Editing, UpAndDownKeepTheColumnOfWideCharacters) {
  editor_.Insert("\u65e5\u672c\nabcd");
  editor_.Left();
  editor_.Up();
  EXPECT_EQ(Seen(), "\u65e5|\u672c\nabcd");
  editor_.Down();
  EXPECT_EQ(Seen(), "\u65e5\u672c\nab|cd");
}

TEST_F(Editing, HistoryGoesBackAndReturnsToTheDraft) {
  editor_.Insert("one");
  EXPECT_EQ(editor_.Take(), "one");
  editor_.Insert("two\nlines");
  editor_.Take();
  editor_.Take();  // nothing to remember
  editor_.Insert("draft");
  editor_.Up();
  EXPECT_EQ(Seen(), "two\nlines|");
  editor_.Up();  // within the message first
  EXPECT_EQ(Seen(), "two|\nlines");
  editor_.Up();
  EXPECT_EQ(Seen(), "one|");
  editor_.Up();
  EXPECT_EQ(Seen(), "one|");
  for (int i = 0; i < 4; ++i) editor_.Down();
  EXPECT_EQ(Seen(), "draft|");
}

TEST_F(Editing, TheSameMessageTwiceIsRememberedOnce) {
  for (int i = 0; i < 2; ++i) {
    editor_.Insert("again");
    editor_.Take();
  }
  editor_.Up();
  editor_.Up();
  EXPECT_EQ(Seen(), "again|");
  editor_.Down();
  EXPECT_EQ(Seen(), "|");
}

TEST_F(Editing, RowsAreCutByColumns) {
  editor_.Insert("ab\u65e5\u672cc\nx");
  const LineEditor::Rows rows = editor_.Layout(3);
  EXPECT_EQ(rows.rows,
            (std::vector<std::string>{"ab", "\u65e5", "\u672cc", "x"}));
  EXPECT_EQ(rows.cursor_row, 3);
  EXPECT_EQ(rows.cursor_column, 1);
}

TEST_F(Editing, TheCursorBehindAFullRowStandsOnTheNext) {
  editor_.Insert("abc");
  LineEditor::Rows rows = editor_.Layout(3);
  EXPECT_EQ(rows.rows, (std::vector<std::string>{"abc", ""}));
  EXPECT_EQ(rows.cursor_row, 1);
  EXPECT_EQ(rows.cursor_column, 0);
  editor_.Left();
  rows = editor_.Layout(3);
  EXPECT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.cursor_column, 2);
}

TEST_F(Editing, ANewlineBehindAFullRowMakesOneRow) {
  editor_.Insert("abc\nd");
  const LineEditor::Rows rows = editor_.Layout(3);
  EXPECT_EQ(rows.rows, (std::vector<std::string>{"abc", "d"}));
  EXPECT_EQ(rows.cursor_row, 1);
}

}  // namespace
}  // namespace weft::chat
