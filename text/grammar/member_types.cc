#include "text/grammar/member_types.h"

#include <utility>
#include <vector>

#include "text/grammar/pattern.h"
#include "text/grammar/schema_goals.h"
#include "text/grammar/schema_values.h"

namespace weft::grammar {

struct MemberTypes::Known {
  explicit Known(const nlohmann::ordered_json& schema)
      : goals(schema, /*open=*/false, /*strict=*/false),
        values(&goals, &budget),
        ways(goals.Expand({goals.Root()})) {}

  Budget budget;
  SchemaGoals goals;
  SchemaValues values;
  std::vector<Alternative> ways;
};

MemberTypes::MemberTypes(const nlohmann::ordered_json* schema) {
  if (schema == nullptr || !schema->is_object()) return;
  known_ = std::make_unique<Known>(*schema);
}

MemberTypes::~MemberTypes() = default;

uint8_t MemberTypes::Of(const std::string& name) {
  if (known_ == nullptr) return kAllTypes;
  const uint8_t types = known_->values.MemberTypes(known_->ways, name);
  // What is not allowed comes all the same, and may be anything.
  if (types == 0 || !known_->goals.status().ok()) return kAllTypes;
  return types;
}

bool MemberTypes::Allows(const std::string& name,
                         const nlohmann::ordered_json& value) {
  return known_ == nullptr || !known_->goals.status().ok() ||
         known_->values.MemberMayBe(known_->ways, name, value);
}

const StringLanguage& TakenForOthers(uint8_t types) {
  const auto made = [](const char* pattern) {
    Budget budget;
    auto texts = ParsePattern(pattern, &budget);
    return new StringLanguage(*std::move(texts));
  };
  static const auto* const kNone = new StringLanguage();
  static const auto* const kNulls = made("^\\s*(?:null|None)\\s*$");
  static const auto* const kAny = made(
      "^\\s*(?:[\"'(\\[{][\\s\\S]*|[-+.0-9][-+.0-9A-Z_a-z]*|true|false|null|"
      "True|False|None)\\s*$");
  if ((types & ~kStringType) == 0) return *kNone;
  return (types & ~(kStringType | kNullType)) == 0 ? *kNulls : *kAny;
}

}  // namespace weft::grammar
