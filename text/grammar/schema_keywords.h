// What the keywords of JSON Schema are about, and how each narrows an
// Alternative: for schemas that hold and such that do not (schema_goals.cc,
// schema_contraries.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "text/grammar/schema_goals.h"
#include "text/grammar/schema_numbers.h"

namespace weft::grammar {

// Only tells something.
bool IsNote(absl::string_view key);
// Changes what another keyword means, which reads it.
bool IsRead(absl::string_view key);
// Of which type a keyword speaks; 0: of any.
uint8_t FamilyOf(absl::string_view key);

bool Contains(const std::vector<std::string>& names, const std::string& name);
void OnlyType(Alternative& made, uint8_t type);
void Tighten(NumberRules& rules, const NumberRules::Bound& bound, bool least);
void AtMost(int64_t most, int64_t* held);

}  // namespace weft::grammar
