#include "loaders/safetensors/json_text.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace weft {
namespace {

using nlohmann::json;

absl::Status BadJson(absl::string_view where, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "bad JSON: ", where, ": ", why, ": use the file as it was published"));
}

// Every value but the first stands behind a comma, a colon or an
// opening bracket. `names`: of the outermost object.
absl::Status CheckSize(absl::string_view text, absl::string_view where,
                       const JsonLimits& limits, int64_t* names) {
  if (static_cast<int64_t>(text.size()) > limits.bytes) {
    return BadJson(where, absl::StrCat("it has ", text.size(),
                                       " bytes, the most is ", limits.bytes));
  }
  int64_t values = 1;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (++depth > limits.depth) {
        return BadJson(where, absl::StrCat("it has more than ", limits.depth,
                                           " objects and lists within each "
                                           "other"));
      }
      ++values;
    }
    if (c == '}' || c == ']') --depth;
    if (c == ',' || c == ':') ++values;
    if (c == ':' && depth == 1) ++*names;
    if (values > limits.values) {
      return BadJson(
          where, absl::StrCat("it has more than ", limits.values, " values"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view text,
                                     absl::string_view where,
                                     const JsonLimits& limits) {
  int64_t names = 0;
  WEFT_RETURN_IF_ERROR(CheckSize(text, where, limits, &names));
  // Without the parser's callback, whose time grows with the square of the
  // objects.
  json parsed = json::parse(text.begin(), text.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    return BadJson(where, "it is no JSON in UTF-8");
  }
  if (!parsed.is_object()) return BadJson(where, "it is no object");
  if (static_cast<int64_t>(parsed.size()) != names) {
    return BadJson(where, "it has a name twice");
  }
  return parsed;
}

absl::StatusOr<json> ReadJsonFile(const std::string& path,
                                  const JsonLimits& limits) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                        MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  return ParseJsonObject(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      path, limits);
}

}  // namespace weft
