#include "chat/terminal_text.h"

#include <langinfo.h>
#include <wchar.h>

#include <algorithm>
#include <clocale>
#include <cstring>

#include "text/printable.h"
#include "text/utf8.h"
#include "utf8proc.h"

namespace weft::chat {
namespace {

// Of a character and its marks: what a cell of ncurses holds.
constexpr int kMostCharacters = 5;
constexpr int kTab = 4;

// Joiners, selectors, marks without width that stand alone.
bool IsInvisible(wchar_t c) {
  return c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2060 && c <= 0x2064) || (c >= 0xfe00 && c <= 0xfe0f) ||
         c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

// Whether a grapheme cluster begins, asked of one character after the other.
class Clusters {
 public:
  bool Begins(wchar_t c) {
    // Most text is ASCII, where each character is one.
    const bool begins =
        before_ < 0 || (before_ < 0x80 && c < 0x80) ||
        utf8proc_grapheme_break_stateful(before_, c, &state_) != 0;
    if (begins) state_ = 0;
    before_ = c;
    return begins;
  }

 private:
  wchar_t before_ = -1;
  utf8proc_int32_t state_ = 0;
};

bool IsSpace(const Glyph& glyph) {
  return glyph.text == " " || glyph.text == "\t";
}

// Builds lines.
class Wrapper {
 public:
  explicit Wrapper(int width) : width_(width) {}

  void Word(const std::vector<Glyph>& glyphs, size_t begin, size_t end) {
    int columns = 0;
    for (size_t i = begin; i < end; ++i) columns += glyphs[i].columns;
    if (column_ + space_ + columns > width_ && column_ > 0) {
      Break();
    } else {
      PutSpaces();
    }
    for (size_t i = begin; i < end; ++i) {
      if (column_ + glyphs[i].columns > width_) Break();
      line_ += glyphs[i].text;
      column_ += glyphs[i].columns;
    }
  }

  void Space(bool tab) {
    const int at = column_ + space_;
    space_ += tab ? kTab - at % kTab : 1;
  }

  void Break() {
    lines_.push_back(std::move(line_));
    line_.clear();
    column_ = space_ = 0;
  }

  std::vector<std::string> Finish() {
    Break();
    return std::move(lines_);
  }

 private:
  void PutSpaces() {
    const int count = std::min(space_, width_ - column_);
    line_.append(count, ' ');
    column_ += count;
    space_ = 0;
  }

  const int width_;
  std::vector<std::string> lines_;
  std::string line_;
  int column_ = 0;
  int space_ = 0;  // columns that are put if a word follows on the line
};

}  // namespace

bool UseUtf8Locale() {
  for (const char* name : {"", "C.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr &&
        std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
      return true;
    }
  }
  return false;
}

std::vector<Glyph> Glyphs(absl::string_view text) {
  std::vector<Glyph> glyphs;
  Clusters clusters;
  int characters = 0;
  for (size_t i = 0; i < text.size();) {
    const Utf8Unit unit = Utf8UnitAt(text, i);
    const absl::string_view raw = text.substr(i, unit.bytes);
    i += unit.bytes;
    if (raw[0] >= ' ' && raw[0] <= '~') {  // nearly always: needs no look-up
      const size_t start = glyphs.empty() ? 0 : glyphs.back().end;
      const bool joined = !clusters.Begins(raw[0]);
      glyphs.push_back({std::string(raw), 1, start, i, joined});
      characters = 1;
      continue;
    }
    std::string shown = Printable(raw);
    const wchar_t c =
        shown.empty() ? 0 : static_cast<wchar_t>(CodePointOf(shown));
    const bool joined = !clusters.Begins(c);
    int columns = wcwidth(c);
    if (shown == "\n" || shown == "\t") {
      columns = 0;
    } else if (shown.empty() || IsInvisible(c) || columns == 0) {
      // Marks upon nothing are not shown either.
      const bool mark = columns == 0 && !shown.empty() && !IsInvisible(c);
      if (!glyphs.empty()) {
        glyphs.back().end = i;
        if (mark && glyphs.back().columns > 0 && characters < kMostCharacters) {
          glyphs.back().text += shown;
          ++characters;
        }
      }
      continue;
    } else if (columns < 0) {
      shown = std::string(kReplacementCharacter);
      columns = 1;
    }
    const size_t start = glyphs.empty() ? 0 : glyphs.back().end;
    glyphs.push_back({std::move(shown), columns, start, i, joined});
    characters = 1;
  }
  return glyphs;
}

int Columns(absl::string_view text) {
  int columns = 0;
  for (const Glyph& glyph : Glyphs(text)) columns += glyph.columns;
  return columns;
}

std::string FitLine(absl::string_view text, int columns) {
  std::vector<Glyph> glyphs = Glyphs(text);
  int total = 0;
  for (Glyph& glyph : glyphs) {
    if (glyph.columns == 0) {
      glyph.text = " ";
      glyph.columns = 1;
    }
    total += glyph.columns;
  }
  const bool cut = total > columns;
  int room = cut ? columns - 1 : columns;
  if (room < 0) return "";
  std::string line;
  for (const Glyph& glyph : glyphs) {
    if (glyph.columns > room) break;
    line += glyph.text;
    room -= glyph.columns;
  }
  return cut ? line + "\xE2\x80\xA6" : line;
}

std::vector<std::string> WrapText(absl::string_view text, int columns) {
  const std::vector<Glyph> glyphs = Glyphs(text);
  Wrapper wrapper(std::max(columns, 2));
  for (size_t i = 0; i < glyphs.size();) {
    if (glyphs[i].text == "\n") {
      wrapper.Break();
      ++i;
    } else if (IsSpace(glyphs[i])) {
      wrapper.Space(glyphs[i].text == "\t");
      ++i;
    } else {
      const size_t begin = i++;
      // Lines may be cut before and after every wide character.
      while (glyphs[begin].columns == 1 && i < glyphs.size() &&
             glyphs[i].columns == 1 && !IsSpace(glyphs[i])) {
        ++i;
      }
      wrapper.Word(glyphs, begin, i);
    }
  }
  return wrapper.Finish();
}

}  // namespace weft::chat
