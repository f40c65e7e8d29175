#include "chat/line_editor.h"

#include <algorithm>
#include <utility>

#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

bool IsWordByte(char c) { return c != ' ' && c != '\n' && c != '\t'; }

}  // namespace

void LineEditor::Insert(absl::string_view text) {
  text_.insert(cursor_, text.data(), text.size());
  cursor_ += text.size();
}

void LineEditor::Erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineEditor::Backspace() { Erase(ClusterBefore(cursor_), cursor_); }
void LineEditor::Delete() { Erase(cursor_, ClusterAfter(cursor_)); }

void LineEditor::DeleteWord() {
  const size_t end = cursor_;
  WordLeft();
  Erase(cursor_, end);
}

void LineEditor::DeleteToLineStart() { Erase(LineStartOf(cursor_), cursor_); }
void LineEditor::DeleteToLineEnd() { Erase(cursor_, LineEndOf(cursor_)); }

void LineEditor::Left() { cursor_ = ClusterBefore(cursor_); }
void LineEditor::Right() { cursor_ = ClusterAfter(cursor_); }

void LineEditor::WordLeft() {
  while (cursor_ > 0 && !IsWordByte(text_[cursor_ - 1])) --cursor_;
  while (cursor_ > 0 && IsWordByte(text_[cursor_ - 1])) --cursor_;
}

void LineEditor::WordRight() {
  while (cursor_ < text_.size() && !IsWordByte(text_[cursor_])) ++cursor_;
  while (cursor_ < text_.size() && IsWordByte(text_[cursor_])) ++cursor_;
}

void LineEditor::LineStart() { cursor_ = LineStartOf(cursor_); }
void LineEditor::LineEnd() { cursor_ = LineEndOf(cursor_); }

void LineEditor::Up() {
  const size_t start = LineStartOf(cursor_);
  if (start > 0) {
    cursor_ = SameColumn(LineStartOf(start - 1));
  } else if (entry_ > 0) {
    Show(entry_ - 1);
  }
}

void LineEditor::Down() {
  const size_t end = LineEndOf(cursor_);
  if (end < text_.size()) {
    cursor_ = SameColumn(end + 1);
  } else if (entry_ < history_.size()) {
    Show(entry_ + 1);
  }
}

void LineEditor::Show(size_t entry) {
  if (entry_ == history_.size()) draft_ = text_;
  entry_ = entry;
  SetText(entry == history_.size() ? draft_ : history_[entry]);
}

void LineEditor::SetText(absl::string_view text) {
  text_ = std::string(text);
  cursor_ = text_.size();
}

std::string LineEditor::Take() {
  std::string taken = std::move(text_);
  SetText("");
  draft_.clear();
  if (!taken.empty() && (history_.empty() || history_.back() != taken)) {
    history_.push_back(taken);
  }
  entry_ = history_.size();
  return taken;
}

size_t LineEditor::ClusterBefore(size_t position) const {
  size_t before = 0;
  for (const Glyph& glyph : Glyphs(text_)) {
    if (glyph.begin >= position) break;
    if (!glyph.joined) before = glyph.begin;
  }
  return before;
}

size_t LineEditor::ClusterAfter(size_t position) const {
  for (const Glyph& glyph : Glyphs(text_)) {
    if (glyph.begin > position && !glyph.joined) return glyph.begin;
  }
  return text_.size();
}

size_t LineEditor::LineStartOf(size_t position) const {
  if (position == 0) return 0;
  const size_t newline = text_.rfind('\n', position - 1);
  return newline == std::string::npos ? 0 : newline + 1;
}

size_t LineEditor::LineEndOf(size_t position) const {
  return std::min(text_.find('\n', position), text_.size());
}

size_t LineEditor::SameColumn(size_t line_start) const {
  const size_t start = LineStartOf(cursor_);
  const int column =
      Columns(absl::string_view(text_).substr(start, cursor_ - start));
  const absl::string_view line = absl::string_view(text_).substr(
      line_start, LineEndOf(line_start) - line_start);
  size_t place = 0;
  int passed = 0;
  for (const Glyph& glyph : Glyphs(line)) {
    if (!glyph.joined) place = glyph.begin;
    if (passed + glyph.columns > column) return line_start + place;
    passed += glyph.columns;
  }
  return line_start + line.size();
}

LineEditor::Rows LineEditor::Layout(int columns) const {
  columns = std::max(columns, 2);
  Rows result;
  result.rows.emplace_back();
  int column = 0;
  const auto next_row = [&] {
    result.rows.emplace_back();
    column = 0;
  };
  const auto note_cursor = [&] {
    result.cursor_row = static_cast<int>(result.rows.size()) - 1;
    result.cursor_column = column;
  };
  for (const Glyph& glyph : Glyphs(text_)) {
    const bool tab = glyph.text == "\t";
    const int width = tab ? 1 : glyph.columns;
    // A newline needs no room, unless the cursor stands on it.
    const int room = glyph.text == "\n" && glyph.begin != cursor_ ? 0 : 1;
    if (column + std::max(width, room) > columns) next_row();
    if (glyph.begin == cursor_) note_cursor();
    if (glyph.text == "\n") {
      next_row();
    } else {
      result.rows.back() += tab ? " " : glyph.text;
      column += width;
    }
  }
  if (cursor_ == text_.size()) {
    if (column >= columns) next_row();
    note_cursor();
  }
  return result;
}

}  // namespace weft::chat
