#include "text/jinja/operations.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "text/jinja/limits.h"
#include "text/jinja/methods.h"

namespace weft::jinja {
namespace {

int64_t Size(const Text& text) { return static_cast<int64_t>(text.size()); }

bool IsKey(const Value& key) {
  return key.is_string() || key.is_number() || key.is_none();
}

int CompareNumbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    return a.whole() < b.whole() ? -1 : a.whole() > b.whole();
  }
  return a.number() < b.number() ? -1 : a.number() > b.number();
}

Value Attribute(Context& context, const Value& value, absl::string_view name) {
  if (value.is(Value::Kind::kNamespace)) {
    for (const auto& [key, attribute] : value.name_space()->attributes) {
      if (key == name) return attribute;
    }
    return Value();
  }
  if (value.is(Value::Kind::kLoop)) return LoopAttribute(context, value, name);
  if (value.is(Value::Kind::kMacro) && name == "name") {
    return MacroName(value);
  }
  if (HasMethod(value, name)) return Value::Method(context, name, value);
  return Value();
}

Value Missing(const Value& value, absl::string_view name) {
  return Value::MakeUndefined(absl::StrCat("a value of type ", value.TypeName(),
                                           " has no attribute '", name, "'"));
}

// Python's rules for where a slice begins and ends.
struct Range {
  int64_t begin, end, step;
};

bool ReadIndex(Context& context, const Value& value, int64_t fallback,
               int64_t size, int64_t low, int64_t high, int64_t* index) {
  if (value.is_none() || value.is_undefined()) {
    *index = fallback;
    return true;
  }
  if (!value.is_integer()) {
    context.Fail("the parts of a slice must be whole numbers");
    return false;
  }
  int64_t at = value.integer();
  if (at < 0) at = at < -size ? low : at + size;
  *index = std::clamp(at, low, high);
  return true;
}

std::optional<Range> ReadRange(Context& context, int64_t size,
                               const Value& begin, const Value& end,
                               const Value& step) {
  Range range{0, 0, 1};
  if (!step.is_none() && !step.is_undefined()) {
    if (!step.is_integer() || step.integer() == 0) {
      context.Fail("the step of a slice must be a whole number, not 0");
      return std::nullopt;
    }
    // Larger steps than the value is long all do the same.
    range.step = std::clamp(step.integer(), -size - 1, size + 1);
  }
  const bool back = range.step < 0;
  const int64_t low = back ? -1 : 0, high = back ? size - 1 : size;
  if (!ReadIndex(context, begin, back ? high : low, size, low, high,
                 &range.begin) ||
      !ReadIndex(context, end, back ? low : high, size, low, high,
                 &range.end)) {
    return std::nullopt;
  }
  return range;
}

template <typename Sequence>
Sequence Cut(const Sequence& whole, const Range& range) {
  Sequence part;
  for (int64_t i = range.begin; range.step > 0 ? i < range.end : i > range.end;
       i += range.step) {
    part.push_back(whole[static_cast<size_t>(i)]);
  }
  return part;
}

// A position from either end; nullopt if there is none.
std::optional<size_t> Place(int64_t index, int64_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<size_t>(index);
}

}  // namespace

bool Equal(Context& context, const Value& a, const Value& b) {
  if (!context.Spend(1)) return false;
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
  if (a.is_string() && b.is_string()) {
    if (a.text().size() != b.text().size()) return false;
    context.Spend(Size(a.text()) / 4);
    return SameText(a.text(), b.text());
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      if (a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i) {
        if (!Equal(context, a.items()[i], b.items()[i])) return false;
      }
      return true;
    }
    case Value::Kind::kMapping:
      if (a.entries().size() != b.entries().size()) return false;
      for (const auto& [key, value] : a.entries()) {
        const Value* other = FindEntry(context, b.entries(), key);
        if (other == nullptr || !Equal(context, value, *other)) return false;
      }
      return true;
    case Value::Kind::kNamespace:
      return a.name_space() == b.name_space();
    case Value::Kind::kMacro:
      return a.macro() == b.macro();
    default:
      return false;
  }
}

int Compare(Context& context, const Value& a, const Value& b) {
  if (!context.Spend(1)) return 0;
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b);
  if (a.is_string() && b.is_string()) {
    context.Spend(std::min(Size(a.text()), Size(b.text())) / 4);
    return CompareText(a.text(), b.text());
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const size_t common = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < common && !context.failed(); ++i) {
      if (Equal(context, a.items()[i], b.items()[i])) continue;
      return Compare(context, a.items()[i], b.items()[i]);
    }
    return CompareNumbers(Value(static_cast<int64_t>(a.items().size())),
                          Value(static_cast<int64_t>(b.items().size())));
  }
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) context.Fail(value->why_undefined());
  }
  context.Fail(absl::StrCat("values of type ", a.TypeName(), " and ",
                            b.TypeName(), " have no order"));
  return 0;
}

bool Contains(Context& context, const Value& whole, const Value& part) {
  if (whole.is_string()) {
    if (!part.is_string()) {
      context.Fail(
          absl::StrCat("'in' a string wants a string, not a value of "
                       "type ",
                       part.TypeName()));
      return false;
    }
    context.Spend(Size(whole.text()) / 4 + Size(part.text()));
    return FindText(whole.text(), part.text()) != Text::npos;
  }
  if (whole.is_mapping()) {
    return FindEntry(context, whole.entries(), part) != nullptr;
  }
  for (const Value& item : Iterate(context, whole)) {
    if (Equal(context, item, part)) return true;
    if (context.failed()) break;
  }
  return false;
}

bool CompareBy(Context& context, absl::string_view op, const Value& a,
               const Value& b) {
  if (op == "==") return Equal(context, a, b);
  if (op == "!=") return !Equal(context, a, b);
  if (op == "in") return Contains(context, b, a);
  if (op == "not in") return !Contains(context, b, a);
  const int order = Compare(context, a, b);
  // Not-a-number is below and above nothing.
  const bool ordered = !a.is_number() || !b.is_number() ||
                       (a.number() == a.number() && b.number() == b.number());
  if (op == "<") return ordered && order < 0;
  if (op == "<=") return ordered && order <= 0;
  if (op == ">") return ordered && order > 0;
  return ordered && order >= 0;
}

const Value* FindEntry(Context& context, const Entries& entries,
                       const Value& key) {
  for (const auto& [other, value] : entries) {
    if (Equal(context, other, key)) return &value;
    if (context.failed()) break;
  }
  return nullptr;
}

bool SetEntry(Context& context, Entries& entries, Value key, Value value) {
  if (!IsKey(key)) {
    context.Fail(absl::StrCat("a value of type ", key.TypeName(),
                              " cannot be a key: use a string or a number"));
    return false;
  }
  if (const Value* found = FindEntry(context, entries, key)) {
    *const_cast<Value*>(found) = std::move(value);
  } else {
    entries.emplace_back(std::move(key), std::move(value));
  }
  return !context.failed();
}

Value GetAttribute(Context& context, const Value& value,
                   absl::string_view name) {
  if (value.is_undefined()) return context.Fail(value.why_undefined());
  Value attribute = Attribute(context, value, name);
  if (!attribute.is_undefined()) return attribute;
  if (value.is_mapping()) {
    for (const auto& [key, entry] : value.entries()) {
      if (!context.Spend(1)) return Value();
      if (key.is_string() && SameText(key.text(), FromUtf8(name))) return entry;
    }
  }
  return Missing(value, name);
}

Value GetItem(Context& context, const Value& value, const Value& key) {
  if (value.is_undefined()) return context.Fail(value.why_undefined());
  if (value.is_mapping()) {
    const Value* entry = FindEntry(context, value.entries(), key);
    if (entry != nullptr) return *entry;
  } else if (value.is_sequence() && key.is_integer()) {
    const auto place =
        Place(key.integer(), static_cast<int64_t>(value.items().size()));
    if (place.has_value()) return value.items()[*place];
  } else if (value.is_string() && key.is_integer()) {
    const auto place = Place(key.integer(), Size(value.text()));
    if (place.has_value()) return Value(Text(1, value.text()[*place]));
  }
  if (key.is_string()) {
    const std::string name = ToUtf8(key.text());
    Value attribute = Attribute(context, value, name);
    return attribute.is_undefined() ? Missing(value, name) : attribute;
  }
  return Value::MakeUndefined(
      absl::StrCat("a value of type ", value.TypeName(), " has no such item"));
}

Value GetSlice(Context& context, const Value& value, const Value& begin,
               const Value& end, const Value& step) {
  if (value.is_undefined()) return context.Fail(value.why_undefined());
  if (!value.is_string() && !value.is_sequence()) {
    return context.Fail(absl::StrCat("a value of type ", value.TypeName(),
                                     " cannot be sliced"));
  }
  const int64_t size = value.is_string()
                           ? Size(value.text())
                           : static_cast<int64_t>(value.items().size());
  const auto range = ReadRange(context, size, begin, end, step);
  if (!range.has_value()) return Value();
  if (value.is_string()) {
    if (!context.Spend(size)) return Value();
    return Value(Cut(value.text(), *range));
  }
  return Value::MakeList(context, Cut(value.items(), *range),
                         value.is(Value::Kind::kTuple));
}

std::vector<Value> Iterate(Context& context, const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return items;
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      context.Spend(static_cast<int64_t>(value.items().size()));
      return value.items();
    case Value::Kind::kMapping:
      context.Spend(static_cast<int64_t>(value.entries().size()));
      for (const auto& [key, item] : value.entries()) items.push_back(key);
      return items;
    case Value::Kind::kString:
      if (!context.Spend(kWorkPerNode * Size(value.text()))) return items;
      for (const char32_t c : value.text()) items.emplace_back(Text(1, c));
      return items;
    default:
      context.Fail(absl::StrCat("a value of type ", value.TypeName(),
                                " cannot be walked over"));
      return items;
  }
}

std::optional<int64_t> Length(Context& context, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kString:
      return Size(value.text());
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case Value::Kind::kMapping:
      return static_cast<int64_t>(value.entries().size());
    case Value::Kind::kLoop:
      return static_cast<int64_t>(value.loop().items.size());
    default:
      context.Fail(
          absl::StrCat("a value of type ", value.TypeName(), " has no length"));
      return std::nullopt;
  }
}

}  // namespace weft::jinja
