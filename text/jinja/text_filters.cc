// Filters that make text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {
namespace {

int64_t Size(const Text& text) { return static_cast<int64_t>(text.size()); }

template <Text (*transform)(const Text&)>
Value Transform(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  return Value(transform(Printed(call.context, call.input)));
}

Text Same(const Text& text) { return text; }

// Words begin after white space, a hyphen or an opening bracket.
Text Title(const Text& text) {
  Text title = text;
  bool in_word = false;
  for (char32_t& c : title) {
    const char32_t point = CodePoint(c);
    if (IsSpace(c) || point == '-' || point == '(' || point == '{' ||
        point == '[' || point == '<') {
      in_word = false;
      continue;
    }
    c = in_word ? ToLower(c) : ToUpper(c);
    in_word = true;
  }
  return title;
}

Text Escape(const Text& text) {
  Text escaped;
  for (const char32_t c : text) {
    absl::string_view name;
    switch (CodePoint(c)) {
      case '&':
        name = "&amp;";
        break;
      case '<':
        name = "&lt;";
        break;
      case '>':
        name = "&gt;";
        break;
      case '\'':
        name = "&#39;";
        break;
      case '"':
        name = "&#34;";
        break;
      default:
        escaped.push_back(c);
    }
    for (const char letter : name) {
      escaped.push_back(static_cast<unsigned char>(letter) | (c & kMark));
    }
  }
  return escaped;
}

Value Trim(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"chars"});
  const bool given = bound.Has(0) && !bound.Get(0)->is_none();
  const Text set = given ? bound.String(0) : Text();
  const Text text = Printed(call.context, call.input);
  if (!call.context.Spend(Size(text) * (1 + Size(set) / 8))) return Value();
  return Value(Strip(text, given ? &set : nullptr, true, true));
}

Value Replace(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"old", "new", "count"}, 2);
  if (context.failed()) return Value();
  const bool limited = bound.Has(2) && !bound.Get(2)->is_none();
  return ReplaceText(
      context, Printed(context, call.input), Printed(context, *bound.Get(0)),
      Printed(context, *bound.Get(1)), limited ? bound.Integer(2, -1) : -1);
}

Value Indent(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"width", "first", "blank"});
  Text margin(4, ' ');
  if (bound.Has(0) && bound.Get(0)->is_string()) {
    margin = bound.String(0);
  } else if (bound.Has(0)) {
    const int64_t width = std::max<int64_t>(0, bound.Integer(0, 4));
    if (!context.Spend(width)) return Value();
    margin = Text(static_cast<size_t>(width), ' ');
  }
  const bool first = bound.Truth(1, false), blank = bound.Truth(2, false);
  if (!call.input.is_string()) {
    return context.Fail(
        absl::StrCat("indent wants a string, not a value of "
                     "type ",
                     call.input.TypeName()));
  }
  if (!context.Spend(2 * Size(call.input.text()))) return Value();
  Text result;
  bool is_first = true;
  for (const Text& line : SplitLines(call.input.text() + Text(1, '\n'))) {
    if (!context.Spend(1 + Size(margin))) return Value();
    if (!is_first) result.push_back('\n');
    if (is_first ? first : blank || !line.empty()) result += margin;
    is_first = false;
    result += line;
  }
  return Value(std::move(result));
}

Value Center(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"width"});
  return Centered(call.context, Printed(call.context, call.input),
                  bound.Integer(0, 80));
}

Value Format(const FilterCall& call) {
  Context& context = call.context;
  Value values;
  if (!call.arguments.keywords.empty()) {
    Entries entries;
    for (const auto& [name, value] : call.arguments.keywords) {
      entries.emplace_back(Value(FromUtf8(name)), value);
    }
    values = Value::MakeMapping(context, std::move(entries));
  } else {
    values = Value::MakeList(context, call.arguments.positional, true);
  }
  return FormatPercent(context, Printed(context, call.input), values);
}

Value Join(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"d", "attribute"});
  const Text separator =
      bound.Has(0) ? Printed(context, *bound.Get(0)) : Text();
  Text joined;
  bool first = true;
  for (const Value& item : Iterate(context, call.input)) {
    if (!context.Spend(Size(separator))) return Value();
    if (!first) joined += separator;
    first = false;
    if (bound.Has(1)) {
      AppendPrinted(context, AttributeOf(context, item, *bound.Get(1), nullptr),
                    joined);
    } else {
      AppendPrinted(context, item, joined);
    }
  }
  return context.failed() ? Value() : Value(std::move(joined));
}

Value ToJson(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(
      context, call.name, call.arguments,
      {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii_only = bound.Truth(0, false);
  if (bound.Has(1) && bound.Get(1)->is_string()) {
    style.indent = bound.String(1);
  } else if (bound.Has(1) && !bound.Get(1)->is_none()) {
    const int64_t width = std::max<int64_t>(0, bound.Integer(1, 0));
    if (!context.Spend(width)) return Value();
    style.indent = Text(static_cast<size_t>(width), ' ');
  }
  if (bound.Has(2) && !bound.Get(2)->is_none()) {
    const std::vector<Value> pair = Iterate(context, *bound.Get(2));
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return context.Fail("tojson: separators are two strings");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  style.sort_keys = bound.Truth(3, false);
  Text text;
  AppendJson(context, call.input, style, text);
  return context.failed() ? Value() : Value(std::move(text));
}

Value WordCount(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  int64_t words = 0;
  bool in_word = false;
  for (const char32_t c : Printed(call.context, call.input)) {
    const bool is_part = IsLetter(c) || IsDigit(c) || CodePoint(c) == '_';
    words += is_part && !in_word;
    in_word = is_part;
  }
  return Value(words);
}

constexpr FilterRow kRows[] = {
    {"string", Transform<Same>},
    {"safe", Transform<Same>},
    {"upper", Transform<UpperCase>},
    {"lower", Transform<LowerCase>},
    {"capitalize", Transform<Capitalized>},
    {"title", Transform<Title>},
    {"escape", Transform<Escape>},
    {"e", Transform<Escape>},
    {"trim", Trim},
    {"replace", Replace},
    {"indent", Indent},
    {"center", Center},
    {"format", Format},
    {"join", Join},
    {"tojson", ToJson},
    {"wordcount", WordCount},
};

}  // namespace

absl::Span<const FilterRow> TextFilters() { return kRows; }

}  // namespace weft::jinja
