#include "text/jinja/text.h"

#include <algorithm>

#include "text/utf8.h"
#include "utf8proc.h"

namespace weft::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

utf8proc_category_t Category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(CodePoint(character)));
}

bool IsLineEnd(char32_t character) {
  switch (CodePoint(character)) {
    case '\n':
    case '\v':
    case '\f':
    case '\r':
    case 0x1C:
    case 0x1D:
    case 0x1E:
    case 0x85:
    case 0x2028:
    case 0x2029:
      return true;
    default:
      return false;
  }
}

// How far a match may be shifted after a mismatch (Knuth, Morris and Pratt,
// 1977): by position, the length of the longest proper border before it.
std::vector<size_t> Borders(const Text& part) {
  std::vector<size_t> borders(part.size(), 0);
  size_t matched = 0;
  for (size_t i = 1; i < part.size(); ++i) {
    while (matched > 0 && CodePoint(part[i]) != CodePoint(part[matched])) {
      matched = borders[matched - 1];
    }
    if (CodePoint(part[i]) == CodePoint(part[matched])) ++matched;
    borders[i] = matched;
  }
  return borders;
}

// Calls `found(place)` for matches from the left until it returns false.
template <typename Found>
void Search(const Text& text, const Text& part, size_t from, Found found) {
  const std::vector<size_t> borders = Borders(part);
  size_t matched = 0;
  for (size_t i = from; i < text.size(); ++i) {
    const char32_t c = CodePoint(text[i]);
    while (matched > 0 && c != CodePoint(part[matched])) {
      matched = borders[matched - 1];
    }
    if (c == CodePoint(part[matched])) ++matched;
    if (matched < part.size()) continue;
    if (!found(i + 1 - matched)) return;
    matched = 0;
  }
}

}  // namespace

Text FromUtf8(absl::string_view utf8, bool marked) {
  const char32_t mark = marked ? kMark : 0;
  Text text;
  text.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size();) {
    const Utf8Unit unit = Utf8UnitAt(utf8, at);
    char32_t c = kReplacement;
    if (unit.kind == Utf8Unit::kCharacter) {
      const auto byte = [&](size_t i) {
        return static_cast<char32_t>(static_cast<uint8_t>(utf8[at + i]));
      };
      static constexpr char32_t kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
      c = byte(0) & kLeadBits[unit.bytes];
      for (size_t i = 1; i < unit.bytes; ++i) c = c << 6 | (byte(i) & 0x3F);
    }
    text.push_back(c | mark);
    at += unit.bytes;
  }
  return text;
}

void AppendUtf8(char32_t character, std::string& utf8) {
  char32_t c = CodePoint(character);
  // Escapes in a template can write what is no character.
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = kReplacement;
  if (c < 0x80) {
    utf8.push_back(static_cast<char>(c));
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  utf8.push_back(static_cast<char>(kLead[more] | (c >> 6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    utf8.push_back(static_cast<char>(0x80 | ((c >> 6 * i) & 0x3F)));
  }
}

std::string ToUtf8(const Text& text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char32_t c : text) AppendUtf8(c, utf8);
  return utf8;
}

void AppendAscii(absl::string_view ascii, Text& text) {
  for (const char c : ascii) text.push_back(static_cast<unsigned char>(c));
}

bool SameText(const Text& a, const Text& b) {
  return a.size() == b.size() && CompareText(a, b) == 0;
}

bool SameText(const Text& a, absl::string_view ascii) {
  return a.size() == ascii.size() &&
         std::equal(a.begin(), a.end(), ascii.begin(), [](char32_t x, char y) {
           return CodePoint(x) == static_cast<unsigned char>(y);
         });
}

int CompareText(const Text& a, const Text& b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    const char32_t x = CodePoint(a[i]), y = CodePoint(b[i]);
    if (x != y) return x < y ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

size_t FindText(const Text& text, const Text& part, size_t from) {
  if (from > text.size()) return Text::npos;
  if (part.empty()) return from;
  size_t place = Text::npos;
  Search(text, part, from, [&](size_t at) {
    place = at;
    return false;
  });
  return place;
}

std::vector<size_t> FindAll(const Text& text, const Text& part) {
  std::vector<size_t> places;
  Search(text, part, 0, [&](size_t at) {
    places.push_back(at);
    return true;
  });
  return places;
}

bool StartsWith(const Text& text, const Text& prefix) {
  return text.size() >= prefix.size() &&
         SameText(text.substr(0, prefix.size()), prefix);
}

bool EndsWith(const Text& text, const Text& suffix) {
  return text.size() >= suffix.size() &&
         SameText(text.substr(text.size() - suffix.size()), suffix);
}

bool IsSpace(char32_t character) {
  const char32_t c = CodePoint(character);
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0x2028 || c == 0x2029 ||
         Category(c) == UTF8PROC_CATEGORY_ZS;
}

bool IsLetter(char32_t character) {
  switch (Category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool IsDigit(char32_t character) {
  return Category(character) == UTF8PROC_CATEGORY_ND;
}

bool IsUpper(char32_t character) {
  return Category(character) == UTF8PROC_CATEGORY_LU;
}

bool IsLower(char32_t character) {
  return Category(character) == UTF8PROC_CATEGORY_LL;
}

bool IsPrintable(char32_t character) {
  switch (Category(character)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return CodePoint(character) == ' ';
    default:
      return true;
  }
}

char32_t ToUpper(char32_t character) {
  const auto c = static_cast<utf8proc_int32_t>(CodePoint(character));
  if (c == 0xDF) return character;  // utf8proc has a capital, Python "SS"
  return static_cast<char32_t>(utf8proc_toupper(c)) | (character & kMark);
}

char32_t ToLower(char32_t character) {
  const auto c = static_cast<utf8proc_int32_t>(CodePoint(character));
  return static_cast<char32_t>(utf8proc_tolower(c)) | (character & kMark);
}

Text Strip(const Text& text, const Text* set, bool left, bool right) {
  const auto drops = [&](char32_t character) {
    if (set == nullptr) return IsSpace(character);
    return std::any_of(set->begin(), set->end(), [&](char32_t c) {
      return CodePoint(c) == CodePoint(character);
    });
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end && drops(text[begin])) ++begin;
  while (right && end > begin && drops(text[end - 1])) --end;
  return text.substr(begin, end - begin);
}

std::vector<Text> SplitLines(const Text& text, bool keep_ends) {
  std::vector<Text> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    while (end < text.size() && !IsLineEnd(text[end])) ++end;
    size_t next = end;
    if (next < text.size()) ++next;
    if (next < text.size() && CodePoint(text[end]) == '\r' &&
        CodePoint(text[next]) == '\n') {
      ++next;
    }
    lines.push_back(text.substr(begin, (keep_ends ? next : end) - begin));
    begin = next;
  }
  return lines;
}

}  // namespace weft::jinja
