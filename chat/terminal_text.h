// Text from anywhere as a terminal may show it, in columns.
//
// Idea: a text becomes glyphs, each one character with the marks that combine
// with it, as wide as wcwidth says: that is what ncurses counts, too. Nothing
// that a terminal would obey comes through.
//
// Limits: wcwidth knows characters beyond ASCII only in a UTF-8 locale
// (UseUtf8Locale). Joiners and variation selectors are left out, so an emoji
// that is made of several shows as several: terminals disagree on its width.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::chat {

// Takes character types from the environment's locale if that is UTF-8, else
// from C.UTF-8. False if the system has neither. Not while other threads run.
bool UseUtf8Locale();

struct Glyph {
  std::string text;  // "\n" and "\t" are glyphs by themselves, without columns
  int columns = 0;   // 1 or 2 of all others
  size_t begin = 0, end = 0;  // bytes of the text that it was made of
  // Part of what readers take for the character before (a grapheme cluster of
  // Unicode's UAX 29): emoji of several, syllables.
  bool joined = false;
};

// All bytes of `text` in order: what is not shown belongs to the glyph before
// it (or after, at the start).
std::vector<Glyph> Glyphs(absl::string_view text);

int Columns(absl::string_view text);

// The text on one line, newlines and tabs as spaces; at most `columns` wide,
// ending with an ellipsis where something was cut off.
std::string FitLine(absl::string_view text, int columns);

// Lines of at most `columns` (>= 2), cut at spaces, beside wide characters, and
// within words that are longer than a line. Spaces at a cut are left out; those
// that begin a line of the text stay. Tabs go to every fourth column. An empty
// text is one empty line.
std::vector<std::string> WrapText(absl::string_view text, int columns);

}  // namespace weft::chat
