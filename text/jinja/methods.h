// Methods of strings, lists and mappings, and what `loop` and macros tell.
//
// Methods that would change a list or a mapping are refused, as in Jinja's
// sandbox.
#pragma once

#include "absl/strings/string_view.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

bool HasMethod(const Value& value, absl::string_view name);
// `method` has a self.
Value CallMethod(Context& context, const Value::Function& method,
                 const Arguments& arguments);

Value LoopAttribute(Context& context, const Value& loop,
                    absl::string_view name);
Value MacroName(const Value& macro);

// Shared with the filters of the same names.
Text UpperCase(const Text& text);
Text LowerCase(const Text& text);
Text Capitalized(const Text& text);
// `count` replacements at most; all if negative.
Value ReplaceText(Context& context, const Text& text, const Text& from,
                  const Text& to, int64_t count);
// In the middle of `width` characters.
Value Centered(Context& context, const Text& text, int64_t width);

}  // namespace weft::jinja
