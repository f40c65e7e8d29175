// Bytes in, keys out.
#include "chat/key_reader.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weft::chat {
namespace {

using std::chrono::milliseconds;
using Keys = std::vector<Key>;

class Reading : public testing::Test {
 protected:
  void Push(absl::string_view bytes) { reader_.Push(bytes, now_); }
  void Wait(int amount) { now_ += milliseconds(amount); }

  // What there is, text that follows text as one.
  std::vector<KeyPress> Take() {
    std::vector<KeyPress> all;
    while (std::optional<KeyPress> press = reader_.Next(now_)) {
      if (press->key == Key::kText && !all.empty() &&
          all.back().key == Key::kText) {
        all.back().text += press->text;
      } else {
        all.push_back(*press);
      }
    }
    return all;
  }
  // As one line: text in quotes, other keys as numbers.
  std::string Line() {
    std::string line;
    for (const KeyPress& press : Take()) {
      absl::StrAppend(&line, line.empty() ? "" : " ");
      if (press.key == Key::kText) {
        absl::StrAppend(&line, "\"", press.text, "\"");
      } else {
        absl::StrAppend(&line, Number(press.key));
      }
    }
    return line;
  }
  static int Number(Key key) { return static_cast<int>(key); }
  static std::string Name(Key key) { return absl::StrCat(Number(key)); }

  // The keys of these bytes alone, and then of a letter behind them.
  Keys KeysOf(absl::string_view bytes) {
    Push(bytes);
    Wait(100);
    Keys keys;
    for (const KeyPress& press : Take()) keys.push_back(press.key);
    Push("z");
    EXPECT_EQ(Line(), "\"z\"") << "behind " << bytes;
    return keys;
  }

  KeyReader reader_;
  KeyReader::Time now_;
};

TEST_F(Reading, TextAndControls) {
  Push("ab\tc\rd\n\x7f\x03");
  EXPECT_EQ(Line(),
            absl::StrCat("\"ab\tc\" ", Name(Key::kEnter), " \"d\" ",
                         Name(Key::kNewLine), " ", Name(Key::kBackspace), " ",
                         Name(Key::kInterrupt)));
}

TEST_F(Reading, SequencesOfManyTerminals) {
  const struct {
    Key key;
    std::vector<const char*> sequences;
  } kSequences[] = {
      {Key::kUp, {"\033[A", "\033OA", "\033[1;2A"}},
      {Key::kDown, {"\033[B", "\033OB"}},
      {Key::kRight, {"\033[C", "\033OC"}},
      {Key::kLeft, {"\033[D", "\033OD", "\033[1D"}},
      {Key::kWordLeft,
       {"\033[1;5D", "\033[1;3D", "\033[1;2D", "\033[5D", "\033O5D", "\033Od",
        "\033[d", "\033b", "\033\033[D", "\033\033OD"}},
      {Key::kWordRight, {"\033[1;5C", "\033[c", "\033f", "\033\033[C"}},
      {Key::kHome, {"\033[H", "\033OH", "\033[1~", "\033[7~", "\x01"}},
      {Key::kEnd, {"\033[F", "\033OF", "\033[4~", "\033[8~", "\x05"}},
      {Key::kDelete, {"\033[3~", "\033[3;5~"}},
      {Key::kPageUp, {"\033[5~"}},
      {Key::kPageDown, {"\033[6~", "\033[6;2~"}},
      {Key::kLog, {"\033OQ", "\033[12~", "\033[[B"}},
      {Key::kEnter, {"\r", "\033OM"}},
      {Key::kNewLine, {"\n", "\033\r"}},
      {Key::kDeleteWord, {"\x17", "\033\x7f"}},
  };
  for (const auto& known : kSequences) {
    for (const char* sequence : known.sequences) {
      EXPECT_EQ(KeysOf(sequence), Keys{known.key}) << sequence + 1;
    }
  }
}

TEST_F(Reading, UnknownSequencesAreSwallowed) {
  for (const char* sequence :
       {"\033[20~",
        "\033[1;5R",
        "\033[?1;2c",
        "\033[<0;12;7M",
        "\033[<0;12;7m",
        "\033[M !!",
        "\033[32;12;7M",
        "\033[[A",
        "\033[201~",
        "\033[I",
        "\033[27;5;13~",
        "\033[13;5u",
        "\033OP",
        "\033Oz",
        "\033[>0;276;0c",
        "\033]11;rgb:1111/2222/3333\a",
        "\033]0;/quit\033\\",
        "\033P1+r\033\\",
        "\033_Gi=1;OK\033\\",
        "\033x",
        "\033\xC3\xA9",
        "\x1c",
        "\x1f",
        "\033[99999999999999999999999999999999999999999999999999999~"}) {
    EXPECT_EQ(KeysOf(sequence), Keys()) << sequence + 1;
  }
}

TEST_F(Reading, WhatDoesNotBelongToASequenceEndsIt) {
  EXPECT_EQ(KeysOf("\033[1\r"), Keys{Key::kEnter});
  EXPECT_EQ(KeysOf("\033[1;\033[A"), Keys{Key::kUp});
  EXPECT_EQ(KeysOf("\033O\x03"), Keys{Key::kInterrupt});
  EXPECT_EQ(KeysOf("\033]0;x\033[A"), Keys{Key::kUp});
  Push("\033[1\xC3\xA9");
  EXPECT_EQ(Line(), "\"\u00e9\"");
}

TEST_F(Reading, AStringEndsAtAnyControlCharacter) {
  Push("\033]never ended");
  EXPECT_EQ(Line(), "");
  Push("\r");  // swallowed: what is written would be sent
  EXPECT_EQ(Line(), "");
  Push("x\r");
  EXPECT_EQ(Line(), absl::StrCat("\"x\" ", Name(Key::kEnter)));
}

TEST_F(Reading, OnlyALoneEscapeWaitsForTime) {
  EXPECT_FALSE(reader_.deadline().has_value());
  Push("\033");
  ASSERT_TRUE(reader_.deadline().has_value());
  EXPECT_EQ(*reader_.deadline(), now_ + KeyReader::kEscapeWait);
  EXPECT_EQ(Line(), "");
  Wait(100);
  EXPECT_EQ(Line(), Name(Key::kEscape));
  EXPECT_EQ(Line(), "");
  for (const char* begun : {"\033[", "\033[1;5", "\033O", "\xE6\x97"}) {
    Push(begun);
    EXPECT_FALSE(reader_.deadline().has_value());
    Wait(900);
    EXPECT_EQ(Line(), "");
    Push(begun[0] == '\033' ? "D" : "\xA5");
    EXPECT_NE(Line(), "\"D\"");
  }
}

TEST_F(Reading, ASequenceThatIsNotFinishedEatsNoLaterKey) {
  for (const char* begun : {"\033[", "\033[1;5", "\033O", "\033[[", "\033[M!",
                            "\033]0;x", "\033P", "\033\xC3"}) {
    Push(begun);
    Wait(1100);
    Push("D\r");
    EXPECT_EQ(Line(), absl::StrCat("\"D\" ", Name(Key::kEnter))) << begun + 1;
  }
  // A paste may take its time.
  Push("\033[200~a");
  Wait(5000);
  Push("D\r\033[201~");
  EXPECT_EQ(Line(), "\"aD\n\"");
}

TEST_F(Reading, AnEscapeThatIsReadTogetherWithItsSequenceIsNone) {
  Push("\033");
  Wait(100);  // the reader was late, the terminal was not
  Push("[A");
  EXPECT_EQ(Line(), Name(Key::kUp));
}

TEST_F(Reading, ASequenceBehindALateEscapeIsStillOne) {
  Push("\033");
  Wait(100);
  EXPECT_EQ(Line(), Name(Key::kEscape));
  Push("[200~/save x\r");
  EXPECT_EQ(Line(), "");
  Push("\033[201~");
  EXPECT_EQ(Line(), "\"/save x\n\"");
  // By hand it is text.
  Push("\033");
  Wait(100);
  EXPECT_EQ(Line(), Name(Key::kEscape));
  Push("[");
  Push("A");
  EXPECT_EQ(Line(), "\"[A\"");
}

TEST_F(Reading, ACharacterMayComeInPieces) {
  Push("a\xF0\x9F");
  EXPECT_EQ(Line(), "\"a\"");
  Wait(5000);
  Push("\x98");
  EXPECT_EQ(Line(), "");
  Push("\x80z");
  EXPECT_EQ(Line(), "\"\U0001F600z\"");
  // What never becomes one is text, too.
  Push("\xF0\x9F");
  Push("\r");
  EXPECT_EQ(Line(), absl::StrCat("\"\xF0\x9F\" ", Name(Key::kEnter)));
  Push("\xFF");
  EXPECT_EQ(Line(), "\"\xFF\"");
}

TEST_F(Reading, APasteEndsAtItsEndMarkOnly) {
  Push("\033[200~one\r\n/quit\rtwo\x03\xFF\xC3");
  Wait(60000);
  EXPECT_EQ(Line(), "");
  Push("\x04\033[A\033[200~\033[201x\033[20");
  Wait(60000);
  EXPECT_EQ(Line(), "");
  Push("1\033[201~end");
  EXPECT_EQ(Line(),
            "\"one\n/quit\ntwo\x03\xFF\xC3\x04\033[A\033[200~\033[201x\033[201"
            "end\"");
}

TEST_F(Reading, APasteBeyondTheMostIsGivenAsTooLong) {
  const std::string part(KeyReader::kMostPasteBytes, 'x');
  Push("\033[200~");
  for (int i = 0; i < 3; ++i) Push(part);
  Push("\033[201~");
  const std::vector<KeyPress> presses = Take();
  ASSERT_EQ(presses.size(), 1u);
  EXPECT_EQ(presses[0].text.size(), KeyReader::kMostPasteBytes + 1);
}

TEST_F(Reading, HowReadsCutTheBytesDoesNotMatter) {
  const std::string bytes =
      "a\u65e5\r\033[1;5D\033[200~x\r\n\xFF\033[201~\033\033[C\033]0;t\a\033f"
      "\033[M !!\xE6\x97\033OQ\xC3z";
  Push(bytes);
  const std::string whole = Line();
  for (size_t step = 1; step < bytes.size(); ++step) {
    KeyReader reader;
    std::swap(reader, reader_);
    for (size_t i = 0; i < bytes.size(); i += step) {
      Push(absl::string_view(bytes).substr(i, step));
    }
    EXPECT_EQ(Line(), whole) << step;
  }
}

}  // namespace
}  // namespace weft::chat
