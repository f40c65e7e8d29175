// Global functions.
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/filters.h"
#include "text/jinja/limits.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {
namespace {

struct Call {
  Context& context;
  absl::string_view name;
  const Arguments& arguments;
};

Value Range(const Call& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"start", "stop", "step"}, 1);
  const bool only_stop = !bound.Has(1);
  const int64_t start = only_stop ? 0 : bound.Integer(0, 0);
  const int64_t stop = bound.Integer(only_stop ? 0 : 1, 0);
  const int64_t step = bound.Integer(2, 1);
  if (step == 0) return context.Fail("range: the step is 0");
  std::vector<Value> items;
  int64_t i = start;
  while (step > 0 ? i < stop : i > stop) {
    if (static_cast<int64_t>(items.size()) >= kMaxRange) {
      return context.Fail(
          absl::StrCat("range: has more than ", kMaxRange, " numbers"));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::MakeList(context, std::move(items));
}

// The entries of mappings given by place, then those given by name.
Entries Collect(const Call& call) {
  Entries entries;
  for (const Value& value : call.arguments.positional) {
    if (!value.is_mapping()) {
      call.context.Fail(absl::StrCat(call.name, " wants names or a mapping"));
      return {};
    }
    for (const auto& [key, item] : value.entries()) {
      if (!SetEntry(call.context, entries, key, item)) return {};
    }
  }
  for (const auto& [name, value] : call.arguments.keywords) {
    if (!SetEntry(call.context, entries, Value(FromUtf8(name)), value)) {
      return {};
    }
  }
  return entries;
}

Value MakeDict(const Call& call) {
  return Value::MakeMapping(call.context, Collect(call));
}

Value MakeNamespace(const Call& call) {
  const Entries entries = Collect(call);
  if (call.context.failed()) return Value();
  Namespace* space = call.context.NewNamespace();
  for (const auto& [key, value] : entries) {
    space->attributes.emplace_back(ToUtf8(Printed(call.context, key)), value);
  }
  return Value(space);
}

Value RaiseException(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"message"}, 1);
  if (call.context.failed()) return Value();
  return call.context.Fail(ToUtf8(Printed(call.context, *bound.Get(0))));
}

Value StrftimeNow(const Call& call) {
  const BoundArguments bound(call.context, call.name, call.arguments,
                             {"format"}, 1);
  const std::string format = ToUtf8(bound.String(0));
  if (format.size() > 1000) {
    return call.context.Fail("strftime_now: the format is too long");
  }
  return Value(FromUtf8(
      absl::FormatTime(format, call.context.now(), absl::UTCTimeZone())));
}

struct Row {
  absl::string_view name;
  Value (*call)(const Call&);
};
constexpr Row kFunctions[] = {
    {"range", Range},
    {"dict", MakeDict},
    {"namespace", MakeNamespace},
    {"raise_exception", RaiseException},
    {"strftime_now", StrftimeNow},
};

const Row* FindFunction(absl::string_view name) {
  for (const Row& row : kFunctions) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

bool HasFunction(absl::string_view name) {
  return FindFunction(name) != nullptr;
}

Value CallFunction(Context& context, absl::string_view name,
                   const Arguments& arguments) {
  if (!context.Spend(kWorkPerNode)) return Value();
  Value result = FindFunction(name)->call({context, name, arguments});
  return context.failed() ? Value() : result;
}

}  // namespace weft::jinja
