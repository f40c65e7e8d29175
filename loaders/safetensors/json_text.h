// JSON of files that nobody has checked, as a tree whose size is known first.
//
// Idea: the text is looked through once before it is parsed: how deep it nests
// and how many values it can have. So what the tree takes is bounded, whatever
// the text. Parsed by nlohmann's parser.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

struct JsonLimits {
  int64_t bytes = int64_t{1} << 20;  // of the text
  int64_t values = int64_t{1} << 16;
  int depth = 32;  // objects and lists within each other
};

// The object that `text` is. `where` names it in errors: a text that is larger
// than the limits, no JSON in UTF-8, no object, or an object that has a key
// twice (of the outermost, whose keys are names).
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text,
                                               absl::string_view where,
                                               const JsonLimits& limits);

// The same of a file. kNotFound: there is none.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path,
                                            const JsonLimits& limits);

}  // namespace weft
