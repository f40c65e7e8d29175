// Arguments that are JSON; text/answer/parameters.cc and literals.cc have the
// others.
#include "text/answer/argument_reader.h"

#include "absl/strings/str_cat.h"

namespace weft::answer {
namespace {

class Json : public ArgumentReader {
 public:
  Scan Read(absl::string_view text, bool, size_t* used,
            std::string* json) override {
    for (*used = 0; *used < text.size();) {
      const char c = text[*used];
      const Scan scan = scanner_.Feed(c);
      if (scan == Scan::kBad) return scan;
      json->push_back(c);
      ++*used;
      if (scan == Scan::kDone) return scan;
    }
    return Scan::kMore;
  }

 private:
  JsonScanner scanner_;
};

class Text : public ArgumentReader {
 public:
  Scan Read(absl::string_view text, bool at_end, size_t* used,
            std::string* json) override {
    *used = 0;
    if (!begun_ && !text.empty()) {
      begun_ = true;
      *used = 1;
    }
    while (*used < text.size()) {
      const char c = text[*used];
      if (c == '"') {
        ++*used;
        return inside_ == Scan::kDone ? Scan::kDone : Scan::kBad;
      }
      const size_t size = c == '\\' ? EscapeSize(text.substr(*used)) : 1;
      if (*used + size > text.size()) return at_end ? Scan::kBad : Scan::kMore;
      const absl::string_view spelled = text.substr(*used, size);
      if (static_cast<unsigned char>(c) < 0x20 ||
          !Inside(c == '\\' ? JsonUnescaped(absl::StrCat("\"", spelled, "\""))
                            : std::string(spelled),
                  json)) {
        return Scan::kBad;
      }
      *used += size;
    }
    return Scan::kMore;
  }

 private:
  // Of \u, with the second half of a pair where one is needed: as far as can be
  // told, at least one byte more than there is.
  static size_t EscapeSize(absl::string_view text) {
    if (text.size() < 2 || text[1] != 'u') return 2;
    if (text.size() < 6) return 6;
    const bool first_half =
        (text[2] == 'd' || text[2] == 'D') &&
        absl::string_view("89abAB").find(text[3]) != absl::string_view::npos;
    const bool alone = (text.size() > 6 && text[6] != '\\') ||
                       (text.size() > 7 && text[7] != 'u');
    return first_half && !alone ? 12 : 6;
  }

  bool Inside(absl::string_view bytes, std::string* json) {
    if (bytes.empty()) return false;
    for (const char c : bytes) {
      const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
      const bool outside = scanner_.depth() == 0;
      if (outside && space) continue;
      // Arguments are one object.
      if (outside && (c != '{' || inside_ == Scan::kDone)) return false;
      inside_ = scanner_.Feed(c);
      if (inside_ == Scan::kBad) return false;
      json->push_back(c);
    }
    return true;
  }

  JsonScanner scanner_;
  Scan inside_ = Scan::kMore;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<ArgumentReader> JsonArguments() {
  return std::make_unique<Json>();
}

std::unique_ptr<ArgumentReader> TextArguments() {
  return std::make_unique<Text>();
}

}  // namespace weft::answer
