// What a terminal may be shown of a text that others wrote.
//
// Idea: a terminal obeys control characters: those of ASCII, those that follow
// it (C1, as U+0080 to U+009F or as bare bytes), and those that turn the
// direction of writing, so that what is read is not what is there. Each is
// shown as U+FFFD. The marks that Hebrew and Arabic are written with turn only
// what stands beside them, digits and brackets: they are left out.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// The code point of `character`, which is one whole, well-formed character.
char32_t CodePointOf(absl::string_view character);

// Well-formed UTF-8 in which every control character but newline and tab, and
// every character that turns the direction of writing, is U+FFFD. Carriage
// returns and marks of direction are left out. A text in pieces of whole
// characters gives the same.
std::string Printable(absl::string_view text);

// The same on one line: newlines and tabs are spaces.
std::string PrintableLine(absl::string_view text);

// Printable for a text that comes in pieces, cut anywhere.
class PrintableStream {
 public:
  // What can be shown by now: the beginning of a character waits for its end.
  std::string Next(absl::string_view bytes);
  // What was still waiting.
  std::string Finish();

 private:
  std::string waiting_;
};

}  // namespace weft
