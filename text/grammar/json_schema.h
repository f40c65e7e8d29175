// JSON Schema as a grammar: whatever the grammar lets pass is valid JSON of
// that schema.
//
// Supported: type (also a list), properties, required, additionalProperties,
// items, prefixItems, minItems, maxItems, enum, const, anyOf, oneOf (as anyOf),
// allOf of one, $ref within the schema (also to itself), minLength, maxLength,
// pattern (pattern.h), format (date, time, date-time, uuid, ipv4), minimum,
// maximum, exclusiveMinimum, exclusiveMaximum of integers (of numbers: a
// minimum of 0); true. Notes like title, description and default are ignored.
// Any other keyword is an error that names it, so that no one relies on what is
// not kept.
//
// Where a schema allows more than is useful, less is generated, which is still
// valid: properties come in the order of the schema; there are no additional
// ones unless additionalProperties asks for them, and their keys have no
// escapes; all prefixItems are there; integers have at most 18 digits; a schema
// without type is of the type that its keywords speak of. White space is at
// most one space, or a newline and an indent.
//
// The schema may come from a stranger: its depth and the size of what it
// becomes are bounded.
#pragma once

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// Errors read "JSON schema: <place>: <why>".
absl::StatusOr<Syntax> FromJsonSchema(const nlohmann::ordered_json& schema);

// Any JSON object: what "JSON mode" is.
Syntax AnyJsonObject();

}  // namespace weft::grammar
