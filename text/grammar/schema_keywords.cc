#include "text/grammar/schema_keywords.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace weft::grammar {
namespace {

// Keywords that only tell something.
constexpr absl::string_view kNotes[] = {"$schema",
                                        "$id",
                                        "id",
                                        "$comment",
                                        "$defs",
                                        "definitions",
                                        "$anchor",
                                        "$dynamicAnchor",
                                        "$recursiveAnchor",
                                        "$vocabulary",
                                        "title",
                                        "default",
                                        "examples",
                                        "example",
                                        "description",
                                        "readOnly",
                                        "writeOnly",
                                        "deprecated",
                                        "discriminator",
                                        "contentEncoding",
                                        "contentMediaType",
                                        "contentSchema",
                                        "externalDocs",
                                        "xml",
                                        "strict",
                                        "name",
                                        "nullable",
                                        "propertyOrdering",
                                        "enumNames",
                                        "enumDescriptions",
                                        "markdownDescription"};
// Those that change what others mean, which read them.
constexpr absl::string_view kRead[] = {"then", "else", "minContains",
                                       "maxContains", "additionalItems"};

}  // namespace

bool IsNote(absl::string_view key) {
  return std::find(std::begin(kNotes), std::end(kNotes), key) !=
             std::end(kNotes) ||
         absl::StartsWith(key, "x-");
}

bool IsRead(absl::string_view key) {
  return std::find(std::begin(kRead), std::end(kRead), key) != std::end(kRead);
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of which type a keyword speaks; 0: of any.
uint8_t FamilyOf(absl::string_view key) {
  static constexpr std::pair<absl::string_view, uint8_t> kFamilies[] = {
      {"multipleOf", kNumberType},
      {"minimum", kNumberType},
      {"maximum", kNumberType},
      {"exclusiveMinimum", kNumberType},
      {"exclusiveMaximum", kNumberType},
      {"minLength", kStringType},
      {"maxLength", kStringType},
      {"pattern", kStringType},
      {"format", kStringType},
      {"items", kArrayType},
      {"prefixItems", kArrayType},
      {"contains", kArrayType},
      {"minItems", kArrayType},
      {"maxItems", kArrayType},
      {"uniqueItems", kArrayType},
      {"unevaluatedItems", kArrayType},
      {"properties", kObjectType},
      {"patternProperties", kObjectType},
      {"additionalProperties", kObjectType},
      {"propertyNames", kObjectType},
      {"required", kObjectType},
      {"minProperties", kObjectType},
      {"maxProperties", kObjectType},
      {"dependentRequired", kObjectType},
      {"dependentSchemas", kObjectType},
      {"dependencies", kObjectType},
      {"unevaluatedProperties", kObjectType}};
  for (const auto& [name, type] : kFamilies) {
    if (name == key) return type;
  }
  return 0;
}

void OnlyType(Alternative& made, uint8_t type) {
  made.types &= type;
  made.typed = true;
}

void Tighten(NumberRules& rules, const NumberRules::Bound& bound, bool least) {
  auto& held = least ? rules.least : rules.most;
  if (held.has_value()) {
    const int order = Compare(bound.at, held->at);
    if (least ? order < 0 : order > 0) return;
    if (order == 0 && held->exclusive) return;
  }
  held = bound;
}

void AtMost(int64_t most, int64_t* held) {
  if (*held < 0 || most < *held) *held = most;
}

}  // namespace weft::grammar
