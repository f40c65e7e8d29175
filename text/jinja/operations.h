// What operators and subscripts do to values, as in Python. What Python refuses
// is an error of the context.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

bool Equal(Context& context, const Value& a, const Value& b);
// Below, at or above zero; an error where the two have no order.
int Compare(Context& context, const Value& a, const Value& b);
// `part` in `whole`.
bool Contains(Context& context, const Value& whole, const Value& part);
// == != < <= > >= in, not in.
bool CompareBy(Context& context, absl::string_view op, const Value& a,
               const Value& b);

// + - * / // % **
Value Arithmetic(Context& context, absl::string_view op, const Value& a,
                 const Value& b);
Value Negate(Context& context, const Value& value);

// The entry's value, or null.
const Value* FindEntry(Context& context, const Entries& entries,
                       const Value& key);
// Replaces or appends; false and an error if `key` can be none.
bool SetEntry(Context& context, Entries& entries, Value key, Value value);

// value.name: a method or what the object has, else an entry.
Value GetAttribute(Context& context, const Value& value,
                   absl::string_view name);
// value[key]: an entry or item, else an attribute.
Value GetItem(Context& context, const Value& value, const Value& key);
// value[begin:end:step]; none or undefined parts are left out.
Value GetSlice(Context& context, const Value& value, const Value& begin,
               const Value& end, const Value& step);

// What a loop over `value` walks: items, keys, characters; nothing if
// undefined.
std::vector<Value> Iterate(Context& context, const Value& value);
// The number of these; nullopt and an error if there is none.
std::optional<int64_t> Length(Context& context, const Value& value);

}  // namespace weft::jinja
