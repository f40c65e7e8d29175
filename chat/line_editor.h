// The message that is being written: a text of several lines, a cursor, and the
// messages before it. Knows nothing of keys and screens.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::chat {

class LineEditor {
 public:
  const std::string& text() const { return text_; }
  // In bytes, always between two glyphs (terminal_text.h).
  size_t cursor() const { return cursor_; }

  // By what readers take for one character (Glyph::joined): Backspace, Delete,
  // Left, Right.
  void Insert(absl::string_view text);  // well-formed UTF-8
  void Backspace();
  void Delete();
  void DeleteWord();  // before the cursor, with the spaces behind it
  void DeleteToLineStart();
  void DeleteToLineEnd();

  void Left();
  void Right();
  void WordLeft();
  void WordRight();
  void LineStart();
  void LineEnd();
  // To the line above; from the first one, to the message before.
  void Up();
  // To the line below; from the last one, to the message after.
  void Down();

  void SetText(absl::string_view text);  // the cursor goes to its end
  // Gives the text, remembers it as the newest message, and begins anew.
  std::string Take();

  // As shown in rows of `columns` (>= 2): cut where they are full. A cursor
  // behind a full row stands on the next.
  struct Rows {
    std::vector<std::string> rows;  // at least one
    int cursor_row = 0, cursor_column = 0;
  };
  Rows Layout(int columns) const;

 private:
  void Erase(size_t begin, size_t end);
  size_t ClusterBefore(size_t position) const;
  size_t ClusterAfter(size_t position) const;
  size_t LineStartOf(size_t position) const;
  size_t LineEndOf(size_t position) const;
  // The place in the line from `line_start` that is below or above the cursor.
  size_t SameColumn(size_t line_start) const;
  void Show(size_t entry);

  std::string text_;
  size_t cursor_ = 0;
  std::vector<std::string> history_;
  size_t entry_ = 0;   // of history_ that is shown; its size: the draft
  std::string draft_;  // what was being written when history was entered
};

}  // namespace weft::chat
