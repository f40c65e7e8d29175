// Filters that call other filters or tests, and those that choose.
#include "absl/strings/str_cat.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"

namespace weft::jinja {
namespace {

Value Default(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"default_value", "boolean"});
  const bool wanted = call.input.is_undefined() ||
                      (bound.Truth(1, false) && !call.input.Truth());
  if (!wanted) return call.input;
  return bound.Has(0) ? *bound.Get(0) : Value(Text());
}

// Methods and attributes only, no entries.
Value Attr(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments, {"name"}, 1);
  const std::string name = ToUtf8(bound.String(0));
  if (context.failed()) return Value();
  if (call.input.is_mapping() && !HasMethod(call.input, name)) {
    return Value::MakeUndefined(
        absl::StrCat("a value of type dict has no attribute '", name, "'"));
  }
  return GetAttribute(context, call.input, name);
}

// `arguments` from the `first` on.
Arguments Rest(const Arguments& arguments, size_t first) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + first);
  return rest;
}

// The name at `place`, of a filter or a test; empty and an error if it is none.
std::string NameAt(const FilterCall& call, size_t place) {
  const Value& value = call.arguments.positional[place];
  if (value.is_string()) return ToUtf8(value.text());
  call.context.Fail(absl::StrCat(call.name, ": a name is wanted"));
  return "";
}

// As Jinja has it, whatever is false (none, 0, "") holds nothing to choose
// from.
std::vector<Value> ItemsOf(const FilterCall& call) {
  if (!call.input.Truth()) return {};
  return Iterate(call.context, call.input);
}

Value Map(const FilterCall& call) {
  Context& context = call.context;
  std::vector<Value> made;
  // Arguments of what is empty are not looked at.
  if (!call.input.Truth()) return Value::MakeGenerator(context, {});
  if (call.arguments.positional.empty()) {
    const BoundArguments bound(context, call.name, call.arguments,
                               {"attribute", "default"}, 1);
    if (context.failed()) return Value();
    const Value* fallback =
        bound.Has(1) && !bound.Get(1)->is_none() ? bound.Get(1) : nullptr;
    for (const Value& item : ItemsOf(call)) {
      made.push_back(AttributeOf(context, item, *bound.Get(0), fallback));
      if (context.failed()) return Value();
    }
    return Value::MakeGenerator(context, std::move(made));
  }
  const std::string filter = NameAt(call, 0);
  const Arguments arguments = Rest(call.arguments, 1);
  for (const Value& item : ItemsOf(call)) {
    if (context.failed()) return Value();
    made.push_back(CallFilter(context, filter, item, arguments));
  }
  return Value::MakeGenerator(context, std::move(made));
}

Value Select(const FilterCall& call) {
  Context& context = call.context;
  const bool by_attribute =
      call.name == "selectattr" || call.name == "rejectattr";
  const bool wanted = call.name == "select" || call.name == "selectattr";
  const size_t place = by_attribute ? 1 : 0;
  if (call.arguments.positional.size() < place) {
    return context.Fail(absl::StrCat(call.name, " wants an attribute"));
  }
  const bool has_test = call.arguments.positional.size() > place;
  const std::string test = has_test ? NameAt(call, place) : "";
  const Arguments arguments =
      has_test ? Rest(call.arguments, place + 1) : Arguments();
  std::vector<Value> made;
  for (const Value& item : ItemsOf(call)) {
    if (context.failed()) return Value();
    const Value value =
        by_attribute
            ? AttributeOf(context, item, call.arguments.positional[0], nullptr)
            : item;
    const bool holds =
        has_test ? CallTest(context, test, value, arguments) : value.Truth();
    if (holds == wanted) made.push_back(item);
  }
  return Value::MakeGenerator(context, std::move(made));
}

constexpr FilterRow kRows[] = {
    {"default", Default},   {"d", Default},         {"attr", Attr},
    {"map", Map},           {"select", Select},     {"reject", Select},
    {"selectattr", Select}, {"rejectattr", Select},
};

}  // namespace

absl::Span<const FilterRow> SelectFilters() { return kRows; }

}  // namespace weft::jinja
