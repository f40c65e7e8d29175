// The screen as data: where things are, at any size.
#include "chat/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

std::string All(const Frame& frame) {
  std::string text;
  for (size_t i = 0; i < frame.rows.size(); ++i) {
    absl::StrAppend(&text, frame.RowText(i), "\n");
  }
  return text;
}

class Screen : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseUtf8Locale());
    content_.title = "Model";
    content_.title_details = "3.7 M parameters";
    content_.settings = "greedy";
    content_.numbers = {"10.0 tokens/s", "memory 20 MiB"};
    content_.state = "ready";
  }

  Frame Draw(int columns, int rows) {
    return LayOut(content_, editor_, &transcript_, &scroll_, columns, rows);
  }

  void AppendLines(int from, int to) {
    for (int i = from; i < to; ++i) {
      transcript_.Append(absl::StrCat(i == 0 ? "" : "\n", "line ", i));
    }
  }

  ScreenContent content_;
  LineEditor editor_;
  Transcript transcript_{"Model"};
  Scroll scroll_;
};

TEST_F(Screen, HasBarsConversationAndMessage) {
  transcript_.Add(Transcript::kUser, "hello you");
  transcript_.Add(Transcript::kAssistant, "good day");
  editor_.Insert("next");
  EXPECT_EQ(All(Draw(30, 14)),
            " Model       3.7 M parameters \n"
            " greedy                       \n"
            "You\n"
            "  hello you\n"
            "\n"
            "Model\n"
            "  good day\n"
            "\n\n\n\n"
            "──────────────────────────────\n"
            "> next\n"
            " 10.0 tokens/s          ready \n");
}

TEST_F(Screen, TheLastNumbersGoFirst) {
  EXPECT_EQ(Draw(50, 14).RowText(13),
            " 10.0 tokens/s · memory 20 MiB              ready ");
  EXPECT_EQ(Draw(21, 14).RowText(13), " 10.0 tokens/s ready ");
  EXPECT_EQ(Draw(20, 14).RowText(13), "              ready ");
}

TEST_F(Screen, TheCursorStandsInTheMessage) {
  editor_.Insert("one\ntwo");
  const Frame frame = Draw(30, 14);
  EXPECT_EQ(frame.cursor_row, 12);
  EXPECT_EQ(frame.cursor_column, 5);
  EXPECT_EQ(frame.RowText(11), "> one");
  EXPECT_EQ(frame.RowText(12), "  two");
}

TEST_F(Screen, ALongMessageShowsTheRowsAroundTheCursor) {
  for (int i = 0; i < 30; ++i) editor_.Insert(absl::StrCat("line ", i, "\n"));
  const Frame frame = Draw(30, 24);
  EXPECT_NE(All(frame).find("line 29"), std::string::npos);
  EXPECT_EQ(All(frame).find("line 2\n"), std::string::npos);
  EXPECT_EQ(frame.cursor_row, 22);
}

TEST_F(Screen, FollowsTheEndUnlessScrolledBack) {
  transcript_.Add(Transcript::kAssistant, "");
  AppendLines(0, 50);
  EXPECT_NE(All(Draw(30, 14)).find("line 49"), std::string::npos);
  scroll_.Move(-20);
  const std::string before = All(Draw(30, 14));
  EXPECT_NE(before.find("line 29\n"), std::string::npos);
  EXPECT_NE(before.find("20 rows below: PgDn"), std::string::npos);
  // What comes does not move what is read.
  AppendLines(50, 60);
  const std::string after = All(Draw(30, 14));
  EXPECT_NE(after.find("line 29\n"), std::string::npos);
  EXPECT_NE(after.find("30 rows below"), std::string::npos);
  scroll_.Move(1000);
  EXPECT_NE(All(Draw(30, 14)).find("line 59"), std::string::npos);
  EXPECT_TRUE(scroll_.follow);
  scroll_.Move(-1000);
  EXPECT_EQ(Draw(30, 14).RowText(2), "Model");
}

TEST_F(Screen, TheLogIsShownOnWish) {
  content_.log = {"first", "second"};
  EXPECT_EQ(All(Draw(30, 16)).find("second"), std::string::npos);
  content_.show_log = true;
  const std::string all = All(Draw(30, 16));
  EXPECT_NE(all.find("── log ──"), std::string::npos);
  EXPECT_NE(all.find("first\nsecond\n"), std::string::npos);
}

TEST_F(Screen, NoticesStandTogether) {
  transcript_.Add(Transcript::kNotice, "one");
  transcript_.Add(Transcript::kNotice, "two");
  transcript_.Add(Transcript::kUser, "hello");
  EXPECT_NE(All(Draw(30, 14)).find("  one\n  two\n\nYou\n  hello\n"),
            std::string::npos);
}

TEST_F(Screen, AnAnswerGrowsAboveNotices) {
  transcript_.Add(Transcript::kAssistant, "good");
  transcript_.Add(Transcript::kNotice, "a notice");
  Draw(30, 14);
  transcript_.Append(" day");
  EXPECT_NE(All(Draw(30, 14)).find("Model\n  good day\n\n  a notice\n"),
            std::string::npos);
}

TEST_F(Screen, AnotherAnswerTakesThePlaceOfTheLast) {
  transcript_.Add(Transcript::kUser, "hello");
  transcript_.Add(Transcript::kAssistant, "bad");
  transcript_.Add(Transcript::kNotice, "stopped");
  Draw(30, 14);
  transcript_.RemoveAnswer();
  transcript_.Add(Transcript::kAssistant, "good");
  const std::string all = All(Draw(30, 14));
  EXPECT_NE(all.find("You\n  hello\n\nModel\n  good\n"), std::string::npos);
  EXPECT_EQ(all.find("bad"), std::string::npos);
  EXPECT_EQ(all.find("stopped"), std::string::npos);
}

// At no size is anything wider or higher than the screen, whatever is shown;
// and rows that are kept are those that would be made anew.
TEST_F(Screen, FitsAnySize) {
  std::minstd_rand random(1);
  content_.log = {"a line that is longer than a small screen is wide"};
  for (int round = 0; round < 1500; ++round) {
    const int columns = 1 + random() % 90, rows = 1 + random() % 40;
    if (round % 100 == 0) transcript_.Clear();
    switch (random() % 8) {
      case 0:
        transcript_.Add(Transcript::kUser, "\u65e5\u672c\u8a9e e\u0301 word");
        break;
      case 1:
        transcript_.Add(Transcript::kAssistant, "");
        break;
      case 2:
        transcript_.Add(Transcript::kError, "something\nwent wrong");
        break;
      case 3:
        editor_.Insert("\U0001F600 text\n");
        break;
      case 4:
        editor_.Take();
        break;
      case 5:
        scroll_.Move(static_cast<int>(random() % 41) - 20);
        break;
      case 6:
        content_.show_log = !content_.show_log;
        break;
      default:
        transcript_.Append(" some more words of it");
    }
    const Frame frame = Draw(columns, rows);
    ASSERT_EQ(frame.rows.size(), static_cast<size_t>(rows));
    for (int i = 0; i < rows; ++i) {
      const std::string text = frame.RowText(i);
      ASSERT_LE(Columns(text), columns) << text;
      ASSERT_EQ(FitLine(text, columns), text);
    }
    ASSERT_GE(frame.cursor_row, 0);
    ASSERT_LT(frame.cursor_row, rows);
    ASSERT_GE(frame.cursor_column, 0);
    ASSERT_LT(frame.cursor_column, columns);
    scroll_.follow = true;
    const std::string kept = All(Draw(50, 50));
    Draw(51, 50);
    scroll_.follow = true;
    ASSERT_EQ(All(Draw(50, 50)), kept);
  }
}

}  // namespace
}  // namespace weft::chat
