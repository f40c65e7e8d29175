// What must not reach a terminal.
#include "text/printable.h"

#include <gtest/gtest.h>

#include "text/utf8.h"

namespace weft {
namespace {

TEST(Printable, WhatATerminalObeysIsReplaced) {
  EXPECT_EQ(Printable("a\033[31mb"), "a\uFFFD[31mb");
  EXPECT_EQ(Printable("\a\b\x7f"), "\uFFFD\uFFFD\uFFFD");
  // C1 in UTF-8, and as bare bytes.
  EXPECT_EQ(Printable("\u009b31m"), "\uFFFD31m");
  EXPECT_EQ(Printable("\x9b"), "\uFFFD");
  EXPECT_EQ(Printable("a\u202eb\u2066c"), "a\uFFFDb\uFFFDc");
  EXPECT_EQ(Printable(absl::string_view("\0", 1)), "\uFFFD");
}

TEST(Printable, TextIsLeftAlone) {
  const std::string text = "na\u00efve \u65e5\u672c\n\t\U0001F600 e\u0301";
  EXPECT_EQ(Printable(text), text);
  EXPECT_EQ(Printable("one\r\ntwo"), "one\ntwo");
}

TEST(Printable, MarksOfDirectionAreLeftOut) {
  EXPECT_EQ(Printable("\u05d0\u200f1\u200e(\u061c)"), "\u05d01()");
  EXPECT_EQ(Printable("\u206a"), "\uFFFD");
}

TEST(Printable, PiecesGiveWhatTheWholeGives) {
  const std::string text = "\u200fa\r\n\033]0;x\a \u65e5e\u0301\u202e";
  std::string pieces;
  for (size_t i = 0; i < text.size();) {
    const Utf8Unit unit = Utf8UnitAt(text, i);
    pieces += Printable(absl::string_view(text).substr(i, unit.bytes));
    i += unit.bytes;
  }
  EXPECT_EQ(pieces, Printable(text));
}

TEST(Printable, OneLineStaysOne) {
  EXPECT_EQ(PrintableLine("a\nweft: b\tc\r"), "a weft: b c");
}

TEST(PrintableStream, PiecesCutAnywhereGiveWhatTheWholeGives) {
  const std::string text =
      "a\033]0;x\a \u65e5\U0001F600\u009b\u202e\xE6\x9Cz\x9b\n\xF0\x9F";
  for (size_t size = 1; size <= text.size(); ++size) {
    PrintableStream stream;
    std::string pieces;
    for (size_t i = 0; i < text.size(); i += size) {
      pieces += stream.Next(absl::string_view(text).substr(i, size));
    }
    EXPECT_EQ(pieces + stream.Finish(), Printable(text)) << size;
    EXPECT_EQ(stream.Finish(), "");
  }
}

}  // namespace
}  // namespace weft
