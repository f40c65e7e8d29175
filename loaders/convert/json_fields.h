// Fields of JSON that nobody has checked: what is null or of another kind
// counts as absent.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace weft {

// Null: absent.
inline const nlohmann::json* Find(const nlohmann::json& object,
                                  const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

inline std::string TextOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json* found = Find(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>()
                                                : "";
}

inline bool FlagOf(const nlohmann::json& object, const char* key,
                   bool otherwise = false) {
  const nlohmann::json* found = Find(object, key);
  return found != nullptr && found->is_boolean() ? found->get<bool>()
                                                 : otherwise;
}

// A token as configurations name it: its text, or an object with it.
inline std::string TokenText(const nlohmann::json& config, const char* key) {
  const nlohmann::json* found = Find(config, key);
  if (found == nullptr) return "";
  return found->is_string() ? found->get<std::string>()
                            : TextOf(*found, "content");
}

// A step of a tokenizer.json, or in order those that a Sequence has in its
// `list`. One nested deeper than any real one (two levels) is given as it is,
// a step that nobody knows. Null: none.
inline std::vector<const nlohmann::json*> StepsOf(const nlohmann::json* step,
                                                  const char* list,
                                                  int depth = 0) {
  if (step == nullptr) return {};
  const nlohmann::json* inner = Find(*step, list);
  if (TextOf(*step, "type") != "Sequence" || inner == nullptr ||
      !inner->is_array() || depth >= 4) {
    return {step};
  }
  std::vector<const nlohmann::json*> steps;
  for (const nlohmann::json& each : *inner) {
    for (const nlohmann::json* found : StepsOf(&each, list, depth + 1)) {
      steps.push_back(found);
    }
  }
  return steps;
}

}  // namespace weft
