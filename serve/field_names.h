// Fields by their names in a dialect, which writes its requests as OpenAI's: so
// errors come with OpenAI's names, and are told with the dialect's own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace weft {

struct FieldName {
  const char* theirs;
  const char* ours;
};

// What weft adds to requests; it has one name in all dialects.
constexpr FieldName kOwnFields[] = {
    {"seed", "seed"},
    {"cache_prompt", "cache_prompt"},
    {"context_overflow", "context_overflow"},
    {"id_slot", "id_slot"},
    {"speculate", "speculate"},
    {"lora", "lora"},
};

// Copies the fields that are there, under their new names.
void CopyFields(const nlohmann::ordered_json& from,
                absl::Span<const FieldName> names, nlohmann::ordered_json* to);

class FieldNames {
 public:
  FieldNames() = default;
  // `path` stands before their names. Ours may be paths: [] is any place of a
  // list, the same in theirs, and what is behind a path stays behind it. A * at
  // the end: that is not told, since it has no place in their request.
  FieldNames& Add(absl::Span<const FieldName> names,
                  absl::string_view path = "");

  // The error with their name of the field, if it has one: the longest path of
  // ours that leads to it decides.
  absl::Status Told(const absl::Status& status) const;

 private:
  std::vector<std::pair<std::string, std::string>> names_;  // theirs, ours
};

}  // namespace weft
