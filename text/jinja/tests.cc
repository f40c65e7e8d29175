// What stands behind `is`.
#include "absl/strings/str_cat.h"
#include "text/jinja/filters.h"
#include "text/jinja/limits.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {
namespace {

using Kind = Value::Kind;

bool IsRemainder(Context& context, const Value& value, int64_t divisor,
                 int64_t wanted) {
  const Value rest = Arithmetic(context, "%", value, Value(divisor));
  return rest.is_number() && rest.number() == static_cast<double>(wanted);
}

bool IsLetters(Context& context, const Value& value, bool upper) {
  bool found = false;
  for (const char32_t c : Printed(context, value)) {
    if (upper ? IsLower(c) : IsUpper(c)) return false;
    found = found || (upper ? IsUpper(c) : IsLower(c));
  }
  return found;
}

// What Python would call the same object, as far as that can be asked of
// values.
bool IsSame(Context& context, const Value& a, const Value& b) {
  return a.kind() == b.kind() && Equal(context, a, b);
}

struct Row {
  absl::string_view name;
  bool (*holds)(Context&, const Value&);
};
// Tests without an argument.
constexpr Row kPlain[] = {
    {"defined", [](Context&, const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](Context&, const Value& v) { return v.is_undefined(); }},
    {"none", [](Context&, const Value& v) { return v.is_none(); }},
    {"boolean", [](Context&, const Value& v) { return v.is(Kind::kBool); }},
    {"true",
     [](Context&, const Value& v) { return v.is(Kind::kBool) && v.Truth(); }},
    {"false",
     [](Context&, const Value& v) { return v.is(Kind::kBool) && !v.Truth(); }},
    {"integer", [](Context&, const Value& v) { return v.is(Kind::kInt); }},
    {"float", [](Context&, const Value& v) { return v.is(Kind::kFloat); }},
    {"number", [](Context&, const Value& v) { return v.is_number(); }},
    {"string", [](Context&, const Value& v) { return v.is_string(); }},
    {"mapping", [](Context&, const Value& v) { return v.is_mapping(); }},
    // Undefined values are empty sequences.
    {"sequence",
     [](Context&, const Value& v) {
       return v.is_sequence() || v.is_string() || v.is_mapping() ||
              v.is_undefined();
     }},
    {"iterable",
     [](Context&, const Value& v) {
       return v.is_sequence() || v.is_string() || v.is_mapping() ||
              v.is_undefined() || v.is(Kind::kLoop);
     }},
    {"callable",
     [](Context&, const Value& v) {
       return v.is(Kind::kFunction) || v.is(Kind::kMacro) || v.is_undefined();
     }},
    {"escaped", [](Context&, const Value&) { return false; }},
    {"odd", [](Context& c, const Value& v) { return IsRemainder(c, v, 2, 1); }},
    {"even",
     [](Context& c, const Value& v) { return IsRemainder(c, v, 2, 0); }},
    {"lower",
     [](Context& c, const Value& v) { return IsLetters(c, v, false); }},
    {"upper", [](Context& c, const Value& v) { return IsLetters(c, v, true); }},
    {"filter",
     [](Context&, const Value& v) {
       return v.is_string() && HasFilter(ToUtf8(v.text()));
     }},
    {"test",
     [](Context&, const Value& v) {
       return v.is_string() && HasTest(ToUtf8(v.text()));
     }},
};

struct ComparisonRow {
  absl::string_view name, op;
};
constexpr ComparisonRow kComparisons[] = {
    {"==", "=="},         {"eq", "=="}, {"equalto", "=="}, {"!=", "!="},
    {"ne", "!="},         {">", ">"},   {"gt", ">"},       {">=", ">="},
    {"greaterthan", ">"}, {"ge", ">="}, {"<", "<"},        {"lt", "<"},
    {"lessthan", "<"},    {"<=", "<="}, {"le", "<="},      {"in", "in"},
};

const Row* FindPlain(absl::string_view name) {
  for (const Row& row : kPlain) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const ComparisonRow* FindComparison(absl::string_view name) {
  for (const ComparisonRow& row : kComparisons) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

bool HasTest(absl::string_view name) {
  return FindPlain(name) != nullptr || FindComparison(name) != nullptr ||
         name == "sameas" || name == "divisibleby";
}

bool CallTest(Context& context, absl::string_view name, const Value& input,
              const Arguments& arguments) {
  if (!context.Spend(kWorkPerNode)) return false;
  if (!HasTest(name)) {
    context.Fail(absl::StrCat("there is no test '", name, "'"));
    return false;
  }
  const Row* row = FindPlain(name);
  const size_t wanted = row == nullptr ? 1 : 0;
  if (arguments.positional.size() != wanted || !arguments.keywords.empty()) {
    context.Fail(absl::StrCat("the test '", name, "' wants ", wanted,
                              wanted == 1 ? " argument" : " arguments"));
    return false;
  }
  if (row != nullptr) return row->holds(context, input);
  const Value& argument = arguments.positional[0];
  if (const ComparisonRow* comparison = FindComparison(name)) {
    return CompareBy(context, comparison->op, input, argument);
  }
  if (name == "sameas") return IsSame(context, input, argument);
  const Value rest = Arithmetic(context, "%", input, argument);
  return rest.is_number() && rest.number() == 0;
}

}  // namespace weft::jinja
