// Text with an author per character.
//
// Idea: a character is a code point in 32 bits, and the highest bit, which no
// code point needs, marks what came from outside the template. Whatever cuts,
// joins or searches characters keeps their marks without knowing of them; only
// comparing and classifying must look past the mark.
//
// Positions and lengths are code points, as in Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::jinja {

using Text = std::u32string;

inline constexpr char32_t kMark = 0x80000000;
inline char32_t CodePoint(char32_t character) { return character & ~kMark; }
inline bool IsMarked(char32_t character) { return (character & kMark) != 0; }

// Ill-formed UTF-8 becomes U+FFFD (text/utf8.h).
Text FromUtf8(absl::string_view utf8, bool marked = false);
void AppendUtf8(char32_t character, std::string& utf8);
std::string ToUtf8(const Text& text);
// Template text from ASCII.
void AppendAscii(absl::string_view ascii, Text& text);

bool SameText(const Text& a, const Text& b);
bool SameText(const Text& a, absl::string_view ascii);
// Below, at or above zero, by code points.
int CompareText(const Text& a, const Text& b);

// First place of `part` in `text` at or after `from`; npos if none. Takes time
// in proportion to both lengths, whatever they hold.
size_t FindText(const Text& text, const Text& part, size_t from = 0);
// All places that do not overlap, from the left. `part` is not empty.
std::vector<size_t> FindAll(const Text& text, const Text& part);
bool StartsWith(const Text& text, const Text& prefix);
bool EndsWith(const Text& text, const Text& suffix);

// As Python's isspace, isalpha, ... for one character, marked or not.
bool IsSpace(char32_t character);
bool IsLetter(char32_t character);
bool IsDigit(char32_t character);
bool IsUpper(char32_t character);
bool IsLower(char32_t character);
bool IsPrintable(char32_t character);
// One character to one; where Python makes several, it stays as it is.
char32_t ToUpper(char32_t character);
char32_t ToLower(char32_t character);

// Without the characters of `set` (white space if null) at either end.
Text Strip(const Text& text, const Text* set, bool left, bool right);
// Lines without their ends, as Python's splitlines.
std::vector<Text> SplitLines(const Text& text, bool keep_ends = false);

}  // namespace weft::jinja
