#include "text/jinja/methods.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"
#include "text/jinja/string_methods.h"

namespace weft::jinja {
namespace {

constexpr absl::string_view kMappingMethods[] = {"keys", "values", "items",
                                                 "get", "copy"};
constexpr absl::string_view kListMethods[] = {"index", "count", "copy"};
constexpr absl::string_view kLoopMethods[] = {"cycle", "changed"};
constexpr absl::string_view kListChanging[] = {
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"};
constexpr absl::string_view kMappingChanging[] = {"pop", "clear", "update",
                                                  "popitem", "setdefault"};

template <typename Names>
bool IsAmong(const Names& names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value OfMapping(Context& context, absl::string_view name, const Value& self,
                const Arguments& arguments) {
  const Entries& entries = self.entries();
  if (name == "get") {
    const BoundArguments bound(context, "get", arguments, {"key", "default"},
                               1);
    if (context.failed()) return Value();
    const Value* found = FindEntry(context, entries, *bound.Get(0));
    if (found != nullptr) return *found;
    return bound.Has(1) ? *bound.Get(1) : Value::MakeNone();
  }
  const BoundArguments bound(context, name, arguments, {});
  if (name == "copy") return self;
  std::vector<Value> items;
  for (const auto& [key, value] : entries) {
    if (context.failed()) return Value();
    if (name == "keys") items.push_back(key);
    if (name == "values") items.push_back(value);
    if (name == "items") {
      items.push_back(Value::MakeList(context, {key, value}, /*tuple=*/true));
    }
  }
  return Value::MakeList(context, std::move(items));
}

Value OfList(Context& context, absl::string_view name, const Value& self,
             const Arguments& arguments) {
  if (name == "copy") return self;
  const BoundArguments bound(context, name, arguments, {"value"}, 1);
  if (context.failed()) return Value();
  int64_t count = 0;
  for (size_t i = 0; i < self.items().size(); ++i) {
    const bool equal = Equal(context, self.items()[i], *bound.Get(0));
    if (context.failed()) return Value();
    if (equal && name == "index") return Value(static_cast<int64_t>(i));
    count += equal;
  }
  if (name == "index") return context.Fail("index: the list has no such item");
  return Value(count);
}

Value OfLoop(Context& context, absl::string_view name, const Value& self,
             const Arguments& arguments) {
  LoopState& loop = self.loop();
  if (name == "cycle") {
    if (arguments.positional.empty()) {
      return context.Fail("loop.cycle wants arguments");
    }
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  // Values are kept as text: a loop that kept itself would never be freed.
  Text now;
  for (const Value& value : arguments.positional) {
    AppendRepr(context, value, now);
    now.push_back(',');
  }
  const bool changed = !loop.has_changed || !SameText(now, loop.changed);
  loop.has_changed = true;
  loop.changed = std::move(now);
  return Value(changed);
}

}  // namespace

bool HasMethod(const Value& value, absl::string_view name) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return HasStringMethod(name);
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      return IsAmong(kListMethods, name) || IsAmong(kListChanging, name);
    case Value::Kind::kMapping:
      return IsAmong(kMappingMethods, name) || IsAmong(kMappingChanging, name);
    case Value::Kind::kLoop:
      return IsAmong(kLoopMethods, name);
    default:
      return false;
  }
}

Value CallMethod(Context& context, const Value::Function& method,
                 const Arguments& arguments) {
  const Value& self = *method.self;
  if (self.is_string()) {
    return CallStringMethod(context, method.name, self.text(), arguments);
  }
  if (self.is(Value::Kind::kLoop)) {
    return OfLoop(context, method.name, self, arguments);
  }
  if (self.is_mapping() ? IsAmong(kMappingChanging, method.name)
                        : IsAmong(kListChanging, method.name)) {
    return context.Fail(absl::StrCat(
        "'", method.name, "' would change a value: make a new one with set"));
  }
  if (self.is_mapping()) {
    return OfMapping(context, method.name, self, arguments);
  }
  return OfList(context, method.name, self, arguments);
}

Value LoopAttribute(Context& context, const Value& loop,
                    absl::string_view name) {
  const LoopState& state = loop.loop();
  const auto number = [](size_t n) { return Value(static_cast<int64_t>(n)); };
  const size_t length = state.items.size(), index = state.index;
  if (name == "index") return number(index + 1);
  if (name == "index0") return number(index);
  if (name == "revindex") return number(length - index);
  if (name == "revindex0") return number(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return number(length);
  // Only recursive loops, which are refused, count further.
  if (name == "depth") return number(1);
  if (name == "depth0") return number(0);
  if (name == "previtem") {
    if (index > 0) return state.items[index - 1];
    return Value::MakeUndefined("there is no previous item");
  }
  if (name == "nextitem") {
    if (index + 1 < length) return state.items[index + 1];
    return Value::MakeUndefined("there is no next item");
  }
  if (HasMethod(loop, name)) return Value::Method(context, name, loop);
  return Value();
}

Value MacroName(const Value& macro) {
  return Value(FromUtf8(macro.macro()->name));
}

}  // namespace weft::jinja
