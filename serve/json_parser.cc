// ParseJson: text to a value, in time and memory that the text's length and the
// bounds of text/json_tree.h give.
#include <string>

#include "serve/json_fields.h"
#include "text/json_tree.h"

namespace weft {

absl::StatusOr<nlohmann::ordered_json> ParseJson(absl::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == absl::string_view::npos) {
    return FieldError("", "the body is empty: want a JSON object");
  }
  // Languages whose strings are UTF-16 write half a pair as an escape; so do
  // models. It is read as what it is shown as.
  std::string whole;
  if (text.find("\\ud") != absl::string_view::npos ||
      text.find("\\uD") != absl::string_view::npos) {
    whole = WithoutLoneSurrogates(text);
    text = whole;
  }
  JsonTree tree("the body", JsonTree::Spelling::kInFields,
                {"messages", "tools"});
  nlohmann::ordered_json::sax_parse(text.begin(), text.end(), &tree);
  return tree.Take();
}

}  // namespace weft
