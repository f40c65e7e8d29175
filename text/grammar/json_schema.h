// JSON Schema as a grammar: whatever the grammar lets pass is valid JSON of
// that schema.
//
// Idea: what a value must fulfil is a list of goals (schema_goals.h), and each
// list that occurs becomes a rule; recursion is references. Texts and numbers
// are sets of strings (string_language.h), so that any of their keywords stand
// together; lists and objects are rules that count where they must.
//
// Supported: all of the drafts 4 to 2020-12 but for what is said here, and
// OpenAPI's nullable. Not kept, and therefore an error, or named as dropped if
// SchemaOptions say so: $ref to other documents; patterns and formats beyond
// pattern.h and formats.h; uniqueItems of anything but few known values;
// minProperties beyond the names that are known by one; multipleOf numbers of
// many digits; contraries (of not, if, oneOf) of keywords that only an
// automaton without end could follow; keywords that nobody knows. Notes like
// title, description, discriminator and x-* are ignored.
//
// Where a schema allows more than is useful, less is generated, which is still
// valid: properties come in the order of the schema; an object that lists some
// has no others unless additionalProperties or patternProperties ask for them;
// all prefixItems are there, and nothing more; integers have at most 18 digits;
// what is bounded has no exponent; times have T and Z in capitals; a schema
// without type is of the types that its keywords speak of; what is longer than
// 10000 characters or items is not written. With SchemaOptions::open all but
// the last is allowed, too, and up to 5 properties come in any order. White
// space is at most one space, or a newline and an indent.
//
// The schema may come from a stranger: its depth, the work that it takes and
// the size of what it becomes are bounded.
#pragma once

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "text/grammar/member_form.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

struct SchemaOptions {
  // What cannot be kept is an error; else it is named in Syntax::dropped.
  bool strict = true;
  // Whatever is valid is allowed, also what nobody means to ask for (above).
  bool open = false;
  // Not null: the value is an object, of which only the members are written,
  // in this form; what is in them is JSON. A schema that needs a name or a text
  // that the form does not have is not kept there.
  const MemberForm* members = nullptr;
};

// Errors read "JSON schema: <place>: <why>".
absl::StatusOr<Syntax> FromJsonSchema(const nlohmann::ordered_json& schema,
                                      const SchemaOptions& options = {});

// Any JSON object: what "JSON mode" is.
Syntax AnyJsonObject();

}  // namespace weft::grammar
