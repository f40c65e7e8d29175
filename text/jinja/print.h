// Values as text, as Python writes them.
#pragma once

#include <optional>
#include <string>

#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

// The shortest digits that read back as the same number: 1.0, 0.1, 1e-05, inf.
std::string FloatText(double value);

// What {{ value }} prints: Python's str. Undefined values print nothing.
void AppendPrinted(Context& context, const Value& value, Text& text);
Text Printed(Context& context, const Value& value);
// Python's repr, which strings inside of lists have.
void AppendRepr(Context& context, const Value& value, Text& text);

struct JsonStyle {
  std::optional<Text> indent;  // of one level; none: all on one line
  std::optional<Text> item_separator, key_separator;  // else as Python's json
  bool sort_keys = false;
  bool ascii_only = false;
};
// Python's json.dumps. Characters of strings keep their marks, escapes too.
void AppendJson(Context& context, const Value& value, const JsonStyle& style,
                Text& text);

}  // namespace weft::jinja
