// A picture of the screen as plain data: what a terminal library draws.
#pragma once

#include <string>
#include <vector>

namespace weft::chat {

enum class Style {
  kPlain,
  kBar,   // of the bars at the top and the bottom
  kUser,  // who speaks
  kAssistant,
  kNotice,  // what weft itself says
  kError,
  kFaint,  // rules, hints
};

// `text` has neither newlines nor anything that a terminal would obey.
struct Span {
  std::string text;
  Style style = Style::kPlain;
};

struct Frame {
  // Exactly as many as the screen is high, none wider than it.
  std::vector<std::vector<Span>> rows;
  int cursor_row = 0, cursor_column = 0;

  // A row's text, for tests.
  std::string RowText(size_t row) const {
    std::string text;
    for (const Span& span : rows[row]) text += span.text;
    return text;
  }
};

}  // namespace weft::chat
