#include "text/jinja/filters.h"

#include "absl/strings/str_cat.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/limits.h"

namespace weft::jinja {
namespace {

const FilterRow* FindFilter(absl::string_view name) {
  for (const auto rows :
       {TextFilters(), NumberFilters(), ListFilters(), SelectFilters()}) {
    for (const FilterRow& row : rows) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

}  // namespace

bool HasFilter(absl::string_view name) { return FindFilter(name) != nullptr; }

Value CallFilter(Context& context, absl::string_view name, const Value& input,
                 const Arguments& arguments) {
  if (!context.Spend(kWorkPerNode)) return Value();
  const FilterRow* row = FindFilter(name);
  if (row == nullptr) {
    return context.Fail(absl::StrCat("there is no filter '", name, "'"));
  }
  Value result = row->call({context, row->name, input, arguments});
  return context.failed() ? Value() : result;
}

}  // namespace weft::jinja
