// One JSON value, known byte by byte while it comes: whether it goes on, has
// ended, or is none.
//
// RFC 8259 strictly, with a bound on nesting; what is read is not kept, so
// whoever passes the text on keeps every spelling. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft::answer {

enum class Scan {
  kMore,  // what came so far may become one
  kDone,
  kBad,
};

class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 100;

  // kDone: `c` ended an object, a list or a string. Numbers and words have no
  // end of their own: ask AtEnd, or see ScanJson.
  Scan Feed(char c);
  // Nothing follows.
  Scan AtEnd() const;
  // Whether what came so far is the beginning of a value that only lacks its
  // end; that end. Half a key, word or escape must be written out first.
  bool CanComplete() const;
  std::string Completion() const;
  // Within a string, behind its first byte.
  bool in_string() const { return in_string_; }
  size_t depth() const { return open_.size(); }

 private:
  enum class Wants {
    kValue,
    kValueOrClose,  // of a list
    kKeyOrClose,
    kKey,
    kColon,
    kCommaOrClose,
    kNothing,
  };

  Scan Structure(char c);
  Scan InString(char c);
  void ValueEnded();

  Wants wants_ = Wants::kValue;
  std::vector<char> open_;
  bool in_string_ = false, escape_ = false;
  int digits_ = 0;    // of \u, that are still to come
  std::string word_;  // a number, or true, false, null
};

// A value at `*at` of `text`, white space before it included; `*at` is then
// behind it. `at_end`: nothing follows the text.
Scan ScanJson(absl::string_view text, bool at_end, size_t* at);

// Whether all of `text` is one value, space around it aside.
bool IsJson(absl::string_view text);

// `text` as a JSON string, without the quotes.
std::string JsonEscaped(absl::string_view text);

// What a JSON string (with its quotes) stands for; of half a surrogate pair,
// U+FFFD.
std::string JsonUnescaped(absl::string_view text);

}  // namespace weft::answer
