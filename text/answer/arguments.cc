#include "text/answer/arguments.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "text/answer/json_scanner.h"
#include "text/answer/markers.h"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

// Reports the parts of `text`, which is known to be JSON. False: it is beyond
// the tree's bounds.
bool Report(absl::string_view text, JsonTree* tree) {
  constexpr absl::string_view kBetween = ",: \t\r\n";
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    bool good = true;
    if (kBetween.find(c) != absl::string_view::npos) {
      ++at;
    } else if (c == '{' || c == '[') {
      good = c == '{' ? tree->start_object(0) : tree->start_array(0);
      ++at;
    } else if (c == '}' || c == ']') {
      good = c == '}' ? tree->end_object() : tree->end_array();
      ++at;
    } else {
      const size_t begin = at;
      ScanJson(text, /*at_end=*/true, &at);
      const absl::string_view part = text.substr(begin, at - begin);
      std::string inside = c == '"' ? JsonUnescaped(part) : std::string();
      const size_t next = SkipSpace(text, at);
      if (c == '"') {
        good = next < text.size() && text[next] == ':' ? tree->key(inside)
                                                       : tree->string(inside);
      } else if (c == 't' || c == 'f') {
        good = tree->boolean(c == 't');
      } else {
        good = c == 'n' ? tree->null() : tree->number(part);
      }
    }
    if (!good) return false;
  }
  return true;
}

// The longest beginning of `text` that can be made a value, made one.
std::string Completed(absl::string_view text) {
  JsonScanner scanner;
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (scanner.Feed(text[i]) == Scan::kBad) break;
    // Not within a character.
    const bool whole = i + 1 == text.size() ||
                       (static_cast<unsigned char>(text[i + 1]) & 0xc0) != 0x80;
    if (whole && scanner.CanComplete()) size = i + 1;
  }
  JsonScanner again;
  for (const char c : text.substr(0, size)) again.Feed(c);
  return absl::StrCat(text.substr(0, size), again.Completion());
}

}  // namespace

std::optional<json> ParseArguments(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text[0] != '{' || !IsJson(text)) return std::nullopt;
  JsonTree tree("a call", JsonTree::Spelling::kAll);
  if (!Report(text, &tree)) return std::nullopt;
  absl::StatusOr<json> object = tree.Take();
  if (!object.ok()) return std::nullopt;
  return *std::move(object);
}

json ArgumentsObject(absl::string_view text) {
  if (auto object = ParseArguments(text)) return *std::move(object);
  // Space at the end may be of a string.
  const absl::string_view words = absl::StripLeadingAsciiWhitespace(text);
  if (words.empty()) return json::object();
  if (words[0] == '{') {
    if (auto object = ParseArguments(Completed(words))) {
      return *std::move(object);
    }
  }
  return {{"arguments", std::string(text)}};
}

}  // namespace weft::answer
