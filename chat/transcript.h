// The conversation as it is shown: what was said, and notices in between, in
// rows of a given width.
//
// Idea: rows are made once; while an answer grows, its own are made again, and
// nothing else until the width changes.
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
  // To the newest entry.
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
  };

  void AddRows(const Item& item);

  const std::string name_;
  std::vector<Item> items_;
  std::vector<Span> rows_;
  int columns_ = 0;
  size_t finished_items_ = 0;  // those whose rows stay
  size_t finished_rows_ = 0;
};

}  // namespace weft::chat
