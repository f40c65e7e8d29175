// Finds where a text that comes in pieces is to end.
//
// Idea: for each stop string, how much of its beginning the text so far ends
// with (Knuth, Morris and Pratt, "Fast Pattern Matching in Strings", 1977). The
// largest of these is what is held back: it may become a stop string, all
// before it cannot. Each byte costs the same whatever the strings are.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

class StopStrings {
 public:
  // None of them empty.
  explicit StopStrings(std::vector<std::string> strings);

  // Takes more text and appends to `out` what is known to come before any stop
  // string. Returns which string was found, or -1: of those that end first the
  // longest. When one was found, what came before it has all been given out and
  // nothing is held back; nothing more may be pushed.
  int Push(absl::string_view text, std::string* out);

  // Appends what is held back and forgets it.
  void Flush(std::string* out);

  int64_t held_bytes() const { return static_cast<int64_t>(held_.size()); }

 private:
  struct Pattern {
    std::string text;
    // Of each beginning: the longest shorter one that it ends with.
    std::vector<int32_t> borders;
    int32_t matched = 0;
  };

  std::vector<Pattern> patterns_;
  std::string held_;
};

}  // namespace weft
