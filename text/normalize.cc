#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "text/utf8.h"

namespace weft {
namespace {

constexpr int kMostMarks = 100;

// Well-formed text.
void AppendNfc(absl::string_view text, std::string* made) {
  if (text.empty()) return;
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &composed,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) {
    made->append(text.data(), text.size());
  } else {
    made->append(reinterpret_cast<const char*>(composed), size);
  }
  std::free(composed);
}

}  // namespace

std::string ToNfc(absl::string_view text) {
  std::string made;
  made.reserve(text.size());
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<uint8_t>(c) < 0x80; })) {
    made.assign(text.data(), text.size());
    return made;
  }
  size_t begin = 0, at = 0;
  int marks = 0;
  while (at < text.size()) {
    const Utf8Unit unit = Utf8UnitAt(text, at);
    if (unit.kind != Utf8Unit::kCharacter) {
      AppendNfc(text.substr(begin, at - begin), &made);
      made.append(text.data() + at, unit.bytes);
      begin = at += unit.bytes;
      marks = 0;
      continue;
    }
    utf8proc_int32_t c;
    utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
        static_cast<utf8proc_ssize_t>(unit.bytes), &c);
    at += unit.bytes;
    marks = utf8proc_get_property(c)->combining_class == 0 ? 0 : marks + 1;
    if (marks < kMostMarks) continue;
    AppendNfc(text.substr(begin, at - begin), &made);
    begin = at;
    marks = 0;
  }
  AppendNfc(text.substr(begin), &made);
  return made;
}

}  // namespace weft
