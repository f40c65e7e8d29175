#include "text/jinja/string_methods.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"

namespace weft::jinja {
namespace {

// The one letter in common use whose capital is two.
constexpr char32_t kSharpS = 0xDF;

int64_t Size(const Text& text) { return static_cast<int64_t>(text.size()); }

struct Call {
  Context& context;
  absl::string_view name;
  const Text& self;
  const Arguments& arguments;
};

template <Text (*transform)(const Text&)>
Value Transform(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  return Value(transform(call.self));
}

// Words begin after anything that is no letter.
Text TitleCase(const Text& text) {
  Text title = text;
  bool in_word = false;
  for (char32_t& c : title) {
    c = in_word ? ToLower(c) : ToUpper(c);
    in_word = IsLetter(c);
  }
  return title;
}

Text SwapCase(const Text& text) {
  Text swapped = text;
  for (char32_t& c : swapped) c = IsUpper(c) ? ToLower(c) : ToUpper(c);
  return swapped;
}

Value StripEnds(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"characters"});
  const bool given = bound.Has(0) && !bound.Get(0)->is_none();
  const Text set = given ? bound.String(0) : Text();
  if (!call.context.Spend(Size(call.self) * (1 + Size(set) / 8))) {
    return Value();
  }
  return Value(Strip(call.self, given ? &set : nullptr, call.name != "rstrip",
                     call.name != "lstrip"));
}

// Python's split and rsplit.
Value Split(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"sep", "maxsplit"});
  const int64_t most = bound.Integer(1, -1);
  const bool by_space = !bound.Has(0) || bound.Get(0)->is_none();
  const Text separator = by_space ? Text() : bound.String(0);
  if (!by_space && separator.empty()) context.Fail("split: no separator");
  const bool from_right = call.name == "rsplit";
  // From the right is from the left on the reversed text.
  Text text = call.self, mark = separator;
  if (from_right) {
    std::reverse(text.begin(), text.end());
    std::reverse(mark.begin(), mark.end());
  }
  if (!context.Spend(2 * Size(text))) return Value();
  std::vector<Text> parts;
  const auto full = [&] {
    return most >= 0 && static_cast<int64_t>(parts.size()) >= most;
  };
  if (by_space) {
    size_t at = 0;
    const auto skip = [&](bool space) {
      while (at < text.size() && IsSpace(text[at]) == space) ++at;
    };
    skip(true);
    while (at < text.size()) {
      const size_t begin = at;
      if (full()) {
        parts.push_back(text.substr(begin));
        break;
      }
      skip(false);
      parts.push_back(text.substr(begin, at - begin));
      skip(true);
    }
  } else {
    size_t begin = 0;
    for (const size_t place : FindAll(text, mark)) {
      if (full()) break;
      parts.push_back(text.substr(begin, place - begin));
      begin = place + mark.size();
    }
    parts.push_back(text.substr(begin));
  }
  std::vector<Value> items;
  for (Text& part : parts) {
    if (from_right) std::reverse(part.begin(), part.end());
    items.emplace_back(std::move(part));
  }
  if (from_right) std::reverse(items.begin(), items.end());
  return Value::MakeList(context, std::move(items));
}

Value Lines(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"keepends"});
  if (!call.context.Spend(Size(call.self))) return Value();
  std::vector<Value> items;
  for (Text& line : SplitLines(call.self, bound.Truth(0, false))) {
    items.emplace_back(std::move(line));
  }
  return Value::MakeList(call.context, std::move(items));
}

// startswith and endswith: one string or a tuple of them.
Value HasEnd(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments, {"text"}, 1);
  if (context.failed()) return Value();
  std::vector<Value> ends = {*bound.Get(0)};
  if (ends[0].is(Value::Kind::kTuple)) ends = Iterate(context, *bound.Get(0));
  for (const Value& end : ends) {
    if (!end.is_string()) {
      return context.Fail(absl::StrCat(call.name, " wants a string"));
    }
    if (!context.Spend(1 + Size(end.text()) / 4)) return Value();
    if (call.name == "startswith" ? StartsWith(call.self, end.text())
                                  : EndsWith(call.self, end.text())) {
      return Value(true);
    }
  }
  return Value(false);
}

Value RemoveEnd(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {"text"},
                             1);
  const Text end = bound.String(0);
  const Text& self = call.self;
  if (!call.context.Spend(Size(self))) return Value();
  if (call.name == "removeprefix") {
    return Value(StartsWith(self, end) ? self.substr(end.size()) : self);
  }
  return Value(EndsWith(self, end) ? self.substr(0, self.size() - end.size())
                                   : self);
}

Value Replace(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"old", "new", "count"}, 2);
  return ReplaceText(call.context, call.self, bound.String(0), bound.String(1),
                     bound.Integer(2, -1));
}

// find, rfind, index, rindex and count; the latter counts without overlap.
Value Find(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"text", "start"}, 1);
  const Text part = bound.String(0);
  int64_t start = bound.Integer(1, 0);
  if (start < 0) start = std::max<int64_t>(0, start + Size(call.self));
  if (!context.Spend(Size(call.self) + Size(part))) return Value();
  int64_t place = -1, count = 0;
  if (start <= Size(call.self)) {
    if (call.name == "rfind" || call.name == "rindex") {
      Text text = call.self.substr(start), mark = part;
      std::reverse(text.begin(), text.end());
      std::reverse(mark.begin(), mark.end());
      const size_t found = FindText(text, mark);
      if (found != Text::npos) {
        place = Size(call.self) - static_cast<int64_t>(found) - Size(part);
      }
    } else {
      const size_t found =
          FindText(call.self, part, static_cast<size_t>(start));
      if (found != Text::npos) place = static_cast<int64_t>(found);
    }
    count = part.empty() ? Size(call.self) - start + 1
                         : static_cast<int64_t>(
                               FindAll(call.self.substr(start), part).size());
  }
  if (call.name == "count") return Value(count);
  if (place < 0 && (call.name == "index" || call.name == "rindex")) {
    return context.Fail(
        absl::StrCat(call.name, ": the string has no such part"));
  }
  return Value(place);
}

Value Join(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments, {"parts"}, 1);
  if (context.failed()) return Value();
  Text joined;
  bool first = true;
  for (const Value& item : Iterate(context, *bound.Get(0))) {
    if (!item.is_string()) {
      return context.Fail("join: an item is no string");
    }
    if (!context.Spend(Size(item.text()) + Size(call.self))) return Value();
    if (!first) joined += call.self;
    first = false;
    joined += item.text();
  }
  return Value(std::move(joined));
}

Value Partition(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments, {"sep"}, 1);
  const Text mark = bound.String(0);
  if (mark.empty()) return context.Fail("partition: no separator");
  if (!context.Spend(2 * Size(call.self))) return Value();
  const std::vector<size_t> places = FindAll(call.self, mark);
  const bool from_right = call.name == "rpartition";
  if (places.empty()) {
    Value all(call.self), none{Text()};
    if (from_right) return Value::MakeList(context, {none, none, all}, true);
    return Value::MakeList(context, {all, none, none}, true);
  }
  const size_t place = from_right ? places.back() : places.front();
  return Value::MakeList(context,
                         {Value(call.self.substr(0, place)), Value(mark),
                          Value(call.self.substr(place + mark.size()))},
                         true);
}

Value Pad(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"width", "fill"}, 1);
  const int64_t width = bound.Integer(0, 0);
  Text fill = bound.String(1, Text(1, call.name == "zfill" ? '0' : ' '));
  if (fill.size() != 1) return context.Fail("one character is wanted to fill");
  if (!context.Spend(std::max(width, Size(call.self)))) return Value();
  Text text = call.self;
  if (width <= Size(text)) return Value(std::move(text));
  const size_t missing = static_cast<size_t>(width) - text.size();
  if (call.name == "ljust") {
    text.append(missing, fill[0]);
  } else {
    const bool sign = call.name == "zfill" && !text.empty() &&
                      (CodePoint(text[0]) == '-' || CodePoint(text[0]) == '+');
    text.insert(sign ? 1 : 0, missing, fill[0]);
  }
  return Value(std::move(text));
}

Value Center(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {"width"},
                             1);
  return Centered(call.context, call.self, bound.Integer(0, 0));
}

Value Format(const Call& call) {
  return FormatBraces(call.context, call.self, call.arguments);
}

template <bool (*test)(char32_t)>
Value All(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  return Value(!call.self.empty() &&
               std::all_of(call.self.begin(), call.self.end(), test));
}

bool IsLetterOrDigit(char32_t c) { return IsLetter(c) || IsDigit(c); }

// isupper and islower: some letter is, and none is the other.
template <bool (*is)(char32_t), bool (*other)(char32_t)>
Value IsCase(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  return Value(std::any_of(call.self.begin(), call.self.end(), is) &&
               std::none_of(call.self.begin(), call.self.end(), other));
}

struct Row {
  absl::string_view name;
  Value (*call)(const Call&);
};
constexpr Row kMethods[] = {
    {"upper", Transform<UpperCase>},
    {"lower", Transform<LowerCase>},
    {"casefold", Transform<LowerCase>},
    {"capitalize", Transform<Capitalized>},
    {"title", Transform<TitleCase>},
    {"swapcase", Transform<SwapCase>},
    {"strip", StripEnds},
    {"lstrip", StripEnds},
    {"rstrip", StripEnds},
    {"split", Split},
    {"rsplit", Split},
    {"splitlines", Lines},
    {"startswith", HasEnd},
    {"endswith", HasEnd},
    {"removeprefix", RemoveEnd},
    {"removesuffix", RemoveEnd},
    {"replace", Replace},
    {"find", Find},
    {"rfind", Find},
    {"index", Find},
    {"rindex", Find},
    {"count", Find},
    {"join", Join},
    {"partition", Partition},
    {"rpartition", Partition},
    {"ljust", Pad},
    {"rjust", Pad},
    {"zfill", Pad},
    {"center", Center},
    {"format", Format},
    {"isspace", All<IsSpace>},
    {"isalpha", All<IsLetter>},
    {"isdigit", All<IsDigit>},
    {"isdecimal", All<IsDigit>},
    {"isnumeric", All<IsDigit>},
    {"isalnum", All<IsLetterOrDigit>},
    {"isupper", IsCase<IsUpper, IsLower>},
    {"islower", IsCase<IsLower, IsUpper>},
};

const Row* FindMethod(absl::string_view name) {
  for (const Row& row : kMethods) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

bool HasStringMethod(absl::string_view name) {
  return FindMethod(name) != nullptr;
}

Value CallStringMethod(Context& context, absl::string_view name,
                       const Text& self, const Arguments& arguments) {
  if (!context.Spend(Size(self) / 8 + 1)) return Value();
  Value result = FindMethod(name)->call({context, name, self, arguments});
  return context.failed() ? Value() : result;
}

Text UpperCase(const Text& text) {
  Text upper;
  upper.reserve(text.size());
  for (const char32_t c : text) {
    if (CodePoint(c) == kSharpS) upper.push_back('S' | (c & kMark));
    upper.push_back(CodePoint(c) == kSharpS ? 'S' | (c & kMark) : ToUpper(c));
  }
  return upper;
}

Text LowerCase(const Text& text) {
  Text lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), ToLower);
  return lower;
}

Text Capitalized(const Text& text) {
  Text result = LowerCase(text);
  if (!result.empty()) result[0] = ToUpper(result[0]);
  return result;
}

Value ReplaceText(Context& context, const Text& text, const Text& from,
                  const Text& to, int64_t count) {
  if (!context.Spend(2 * Size(text) + Size(from))) return Value();
  std::vector<size_t> places;
  if (from.empty()) {
    for (size_t i = 0; i <= text.size(); ++i) places.push_back(i);
  } else {
    places = FindAll(text, from);
  }
  if (count >= 0 && static_cast<int64_t>(places.size()) > count) {
    places.resize(static_cast<size_t>(count));
  }
  int64_t added;
  if (__builtin_mul_overflow(static_cast<int64_t>(places.size()), Size(to),
                             &added)) {
    added = INT64_MAX;
  }
  if (!context.Spend(added)) return Value();
  Text result;
  size_t begin = 0;
  for (const size_t place : places) {
    result.append(text, begin, place - begin);
    result += to;
    begin = place + from.size();
  }
  result.append(text, begin, Text::npos);
  return Value(std::move(result));
}

Value Centered(Context& context, const Text& text, int64_t width) {
  if (!context.Spend(std::max(width, Size(text)))) return Value();
  if (width <= Size(text)) return Value(text);
  const size_t missing = static_cast<size_t>(width) - text.size();
  // Python puts the odd one left only where the width is odd.
  const size_t left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  return Value(Text(left, ' ') + text + Text(missing - left, ' '));
}

}  // namespace weft::jinja
