// The rows of which filters.cc makes its table.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

struct FilterCall {
  Context& context;
  absl::string_view name;
  const Value& input;
  const Arguments& arguments;
};

struct FilterRow {
  absl::string_view name;
  Value (*call)(const FilterCall&);
};

absl::Span<const FilterRow> TextFilters();    // text_filters.cc
absl::Span<const FilterRow> NumberFilters();  // number_filters.cc
absl::Span<const FilterRow> ListFilters();    // list_filters.cc
absl::Span<const FilterRow> SelectFilters();  // select_filters.cc

// What `attribute` names in `item`: "a.b" or a number; `fallback` (may be null)
// where that is undefined.
Value AttributeOf(Context& context, const Value& item, const Value& attribute,
                  const Value* fallback);
// A string in small letters, anything else as it is.
Value IgnoreCase(Context& context, const Value& value);

}  // namespace weft::jinja
