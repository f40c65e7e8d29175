// Of which types a member of an object may be, as a JSON schema says it in
// whatever way: for forms in which a string is written without quotes, and only
// the schema tells whether 90210 is one.
#pragma once

#include <memory>
#include <string>

#include "nlohmann/json.hpp"
#include "text/grammar/string_language.h"

namespace weft::grammar {

class MemberTypes {
 public:
  // Of the object's schema, which must outlive it; null: nothing is known.
  explicit MemberTypes(const nlohmann::ordered_json* schema);
  ~MemberTypes();

  // As bits (schema_goals.h); all where nothing is known.
  uint8_t Of(const std::string& name);
  // Whether this value may be the member's.
  bool Allows(const std::string& name, const nlohmann::ordered_json& value);

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

// Texts without quotes that are not taken for the string that they are, of a
// member that may be of any of `types`; more than are really taken for
// something else.
const StringLanguage& TakenForOthers(uint8_t types);

}  // namespace weft::grammar
