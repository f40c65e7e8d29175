// Filters that take items, order them, or make lists.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "text/jinja/bound_arguments.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/limits.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"

namespace weft::jinja {
namespace {

Value First(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  const std::vector<Value> items = Iterate(call.context, call.input);
  if (items.empty()) {
    return Value::MakeUndefined(
        absl::StrCat("there is no ", call.name, " item: the list is empty"));
  }
  return call.name == "first" ? items.front() : items.back();
}

Value List(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  return Value::MakeList(call.context, Iterate(call.context, call.input));
}

Value Reverse(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  if (call.input.is_string()) {
    if (!call.context.Spend(static_cast<int64_t>(call.input.text().size()))) {
      return Value();
    }
    const Text& text = call.input.text();
    return Value(Text(text.rbegin(), text.rend()));
  }
  std::vector<Value> items = Iterate(call.context, call.input);
  std::reverse(items.begin(), items.end());
  return Value::MakeGenerator(call.context, std::move(items));
}

Value Items(const FilterCall& call) {
  const BoundArguments bound(call.context, call.name, call.arguments, {});
  std::vector<Value> items;
  if (!call.input.is_mapping()) {
    if (call.input.is_undefined()) {
      return Value::MakeGenerator(call.context, {});
    }
    return call.context.Fail(absl::StrCat(
        "items wants a mapping, not a value of type ", call.input.TypeName()));
  }
  for (const auto& [key, value] : call.input.entries()) {
    items.push_back(Value::MakeList(call.context, {key, value}, true));
    if (call.context.failed()) return Value();
  }
  return Value::MakeGenerator(call.context, std::move(items));
}

// Values with what they are ordered by, one or several per value.
struct Keyed {
  Value value;
  std::vector<Value> keys;
};

int CompareKeys(Context& context, const Keyed& a, const Keyed& b) {
  for (size_t i = 0; i < a.keys.size() && !context.failed(); ++i) {
    if (Equal(context, a.keys[i], b.keys[i])) continue;
    return Compare(context, a.keys[i], b.keys[i]);
  }
  return 0;
}

// Merges runs of growing length: stable, and without harm when comparing fails
// or numbers that are not numbers have no order.
void SortKeyed(Context& context, bool reverse, std::vector<Keyed>& items) {
  std::vector<Keyed> merged(items.size());
  for (size_t run = 1; run < items.size(); run *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * run) {
      size_t left = begin, out = begin;
      const size_t middle = std::min(begin + run, items.size());
      const size_t end = std::min(begin + 2 * run, items.size());
      size_t right = middle;
      while (out < end) {
        bool take_left = right == end;
        if (left < middle && right < end) {
          const int order = CompareKeys(context, items[left], items[right]);
          take_left = reverse ? order >= 0 : order <= 0;
        }
        merged[out++] = std::move(items[take_left ? left++ : right++]);
      }
    }
    items.swap(merged);
    if (context.failed()) return;
  }
}

Value Sort(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = bound.Truth(1, false);
  std::vector<Value> attributes;
  if (bound.Has(2) && bound.Get(2)->is_string()) {
    const std::string names = ToUtf8(bound.Get(2)->text());
    for (absl::string_view name : absl::StrSplit(names, ',')) {
      attributes.emplace_back(FromUtf8(name));
    }
  } else if (bound.Has(2) && !bound.Get(2)->is_none()) {
    attributes.push_back(*bound.Get(2));
  }
  std::vector<Keyed> keyed;
  for (const Value& item : Iterate(context, call.input)) {
    Keyed one{item, {}};
    if (attributes.empty()) one.keys.push_back(item);
    for (const Value& attribute : attributes) {
      one.keys.push_back(AttributeOf(context, item, attribute, nullptr));
    }
    for (Value& key : one.keys) {
      if (!case_sensitive) key = IgnoreCase(context, key);
    }
    if (!context.Spend(kWorkPerNode)) return Value();
    keyed.push_back(std::move(one));
  }
  SortKeyed(context, bound.Truth(0, false), keyed);
  std::vector<Value> items;
  for (Keyed& one : keyed) items.push_back(std::move(one.value));
  return Value::MakeList(context, std::move(items));
}

Value DictSort(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"case_sensitive", "by", "reverse"});
  const bool by_value = bound.Has(1) && SameText(bound.String(1), "value");
  if (!call.input.is_mapping()) return context.Fail("dictsort wants a mapping");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : call.input.entries()) {
    const Value& by = by_value ? value : key;
    keyed.push_back({Value::MakeList(context, {key, value}, true),
                     {bound.Truth(0, false) ? by : IgnoreCase(context, by)}});
    if (context.failed()) return Value();
  }
  SortKeyed(context, bound.Truth(2, false), keyed);
  std::vector<Value> items;
  for (Keyed& one : keyed) items.push_back(std::move(one.value));
  return Value::MakeList(context, std::move(items));
}

Value KeyOf(const FilterCall& call, const BoundArguments& bound,
            const Value& item) {
  Value key = item;
  if (bound.Has(1) && !bound.Get(1)->is_none()) {
    key = AttributeOf(call.context, item, *bound.Get(1), nullptr);
  }
  return bound.Truth(0, false) ? key : IgnoreCase(call.context, key);
}

Value Unique(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"case_sensitive", "attribute"});
  std::vector<Value> items, seen;
  for (const Value& item : Iterate(context, call.input)) {
    Value key = KeyOf(call, bound, item);
    const bool is_new = std::none_of(
        seen.begin(), seen.end(),
        [&](const Value& other) { return Equal(context, key, other); });
    if (context.failed()) return Value();
    if (!is_new) continue;
    seen.push_back(std::move(key));
    items.push_back(item);
  }
  return Value::MakeGenerator(context, std::move(items));
}

Value Extreme(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"case_sensitive", "attribute"});
  const std::vector<Value> items = Iterate(context, call.input);
  if (items.empty()) return Value::MakeUndefined("the list is empty");
  size_t best = 0;
  for (size_t i = 1; i < items.size() && !context.failed(); ++i) {
    const int order = Compare(context, KeyOf(call, bound, items[i]),
                              KeyOf(call, bound, items[best]));
    if (call.name == "max" ? order > 0 : order < 0) best = i;
  }
  return items[best];
}

// Rows of `linecount`, the last one filled up.
Value Batch(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"linecount", "fill_with"}, 1);
  const int64_t width = bound.Integer(0, 1);
  if (width < 1 || width > kMaxRange) {
    return context.Fail("batch: no such number");
  }
  const std::vector<Value> items = Iterate(context, call.input);
  std::vector<Value> rows, row;
  for (size_t i = 0; i < items.size(); ++i) {
    row.push_back(items[i]);
    const bool last = i + 1 == items.size();
    if (static_cast<int64_t>(row.size()) < width && !last) continue;
    if (bound.Has(1) && !bound.Get(1)->is_none()) {
      if (!context.Spend(width)) return Value();
      row.resize(static_cast<size_t>(width), *bound.Get(1));
    }
    rows.push_back(Value::MakeList(context, std::move(row)));
    row.clear();
  }
  return Value::MakeGenerator(context, std::move(rows));
}

// `slices` columns of nearly equal length.
Value Slice(const FilterCall& call) {
  Context& context = call.context;
  const BoundArguments bound(context, call.name, call.arguments,
                             {"slices", "fill_with"}, 1);
  const int64_t columns = bound.Integer(0, 1);
  if (columns < 1 || columns > kMaxRange) {
    return context.Fail("slice: no such number");
  }
  const std::vector<Value> items = Iterate(context, call.input);
  const size_t count = static_cast<size_t>(columns);
  const size_t each = items.size() / count, longer = items.size() % count;
  std::vector<Value> made;
  size_t next = 0;
  for (size_t i = 0; i < count && !context.failed(); ++i) {
    const size_t size = each + (i < longer ? 1 : 0);
    std::vector<Value> column(items.begin() + next,
                              items.begin() + next + size);
    next += size;
    if (bound.Has(1) && !bound.Get(1)->is_none() && longer > 0 && i >= longer) {
      column.push_back(*bound.Get(1));
    }
    made.push_back(Value::MakeList(context, std::move(column)));
  }
  return Value::MakeGenerator(context, std::move(made));
}

constexpr FilterRow kRows[] = {
    {"first", First},       {"last", First},    {"list", List},
    {"reverse", Reverse},   {"items", Items},   {"sort", Sort},
    {"dictsort", DictSort}, {"unique", Unique}, {"min", Extreme},
    {"max", Extreme},       {"batch", Batch},   {"slice", Slice},
};

}  // namespace

absl::Span<const FilterRow> ListFilters() { return kRows; }

Value AttributeOf(Context& context, const Value& item, const Value& attribute,
                  const Value* fallback) {
  if (!attribute.is_string()) return GetItem(context, item, attribute);
  const std::string names = ToUtf8(attribute.text());
  if (!context.Spend(static_cast<int64_t>(names.size()))) return Value();
  Value value = item;
  for (absl::string_view name : absl::StrSplit(names, '.')) {
    int64_t place = 0;
    value = GetItem(
        context, value,
        absl::SimpleAtoi(name, &place) ? Value(place) : Value(FromUtf8(name)));
    if (value.is_undefined() && fallback != nullptr) return *fallback;
    if (context.failed()) break;
  }
  return value;
}

Value IgnoreCase(Context& context, const Value& value) {
  if (!value.is_string()) return value;
  if (!context.Spend(static_cast<int64_t>(value.text().size()))) return Value();
  return Value(LowerCase(value.text()));
}

}  // namespace weft::jinja
