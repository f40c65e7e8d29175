// The conversation as it is shown: what was said, and notices in between, in
// rows of a given width.
//
// Idea: rows are made once; while an answer grows, its own are made again, and
// those below it, and all when the width changes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chat/frame.h"

namespace weft::chat {

class Transcript {
 public:
  enum Kind { kUser, kAssistant, kNotice, kError };

  // `name` stands above each answer.
  explicit Transcript(std::string name) : name_(std::move(name)) {}

  void Add(Kind kind, absl::string_view text);
  // To the newest answer, which notices may follow.
  void Append(absl::string_view text);
  // From the newest answer on, for another one in its place.
  void RemoveAnswer();
  void Clear();

  // All of it; valid until the next call of any method.
  const std::vector<Span>& Rows(int columns);

 private:
  struct Item {
    Kind kind;
    std::string text;
    size_t end_row = 0;  // of its rows, once they are made
  };

  // The newest answer's place; items_.size() if there is none.
  size_t NewestAnswer() const;
  void AddRows(const Item& item);

  const std::string name_;
  std::vector<Item> items_;
  std::vector<Span> rows_;
  int columns_ = 0;
  size_t laid_out_ = 0;  // items whose rows are right
};

}  // namespace weft::chat
