#include "text/jinja/value.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "text/jinja/context.h"
#include "text/jinja/limits.h"

namespace weft::jinja {

Value Value::MakeNone() {
  Value value;
  value.data_ = None();
  return value;
}

Value Value::MakeUndefined(std::string why) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

Value Value::Number(absl::string_view spelling) {
  const std::optional<Whole> whole = ParseWhole(spelling);
  // Python's whole numbers have no -0.
  if (whole.has_value() && *whole != 0) return Value(*whole);
  std::string text(spelling);
  const double number = std::strtod(text.c_str(), nullptr);
  Value value;
  value.data_ =
      std::make_shared<const Spelled>(Spelled{number, std::move(text)});
  return value;
}

Value Value::Global(absl::string_view name) {
  Value value;
  value.data_ =
      std::make_shared<const Function>(Function{std::string(name), nullptr, 0});
  return value;
}

namespace {

// The depth of what holds `items`; nullopt and an error if it is too much.
std::optional<int> DepthAround(Context& context,
                               const std::vector<Value>& items) {
  int depth = 1;
  for (const Value& item : items) depth = std::max(depth, 1 + item.depth());
  if (!context.CheckValueDepth(depth) ||
      !context.Spend(kWorkPerNode * static_cast<int64_t>(items.size()))) {
    return std::nullopt;
  }
  return depth;
}

}  // namespace

Value Value::MakeList(Context& context, std::vector<Value> items, bool tuple) {
  const std::optional<int> depth = DepthAround(context, items);
  if (!depth.has_value()) return Value();
  Value value;
  value.data_ = std::make_shared<const List>(
      List{std::move(items), tuple, /*generator=*/false, *depth});
  return value;
}

Value Value::MakeGenerator(Context& context, std::vector<Value> items) {
  const std::optional<int> depth = DepthAround(context, items);
  if (!depth.has_value()) return Value();
  Value value;
  value.data_ = std::make_shared<const List>(
      List{std::move(items), /*tuple=*/false, /*generator=*/true, *depth});
  return value;
}

Value Value::MakeMapping(Context& context, Entries entries) {
  int depth = 1;
  for (const auto& [key, item] : entries) {
    depth = std::max(depth, 1 + item.depth());
  }
  if (!context.CheckValueDepth(depth) ||
      !context.Spend(2 * kWorkPerNode * static_cast<int64_t>(entries.size()))) {
    return Value();
  }
  Value value;
  value.data_ =
      std::make_shared<const Mapping>(Mapping{std::move(entries), depth});
  return value;
}

Value Value::Method(Context& context, absl::string_view name, Value self) {
  const int depth = 1 + self.depth();
  if (!context.CheckValueDepth(depth)) return Value();
  Value value;
  value.data_ = std::make_shared<const Function>(
      Function{std::string(name),
               std::make_shared<const Value>(std::move(self)), depth});
  return value;
}

Value::Kind Value::kind() const {
  switch (data_.index()) {
    case 0:
      return Kind::kUndefined;
    case 1:
      return Kind::kNone;
    case 2:
      return Kind::kBool;
    case 3:
      return Kind::kInt;
    case 4:
      return Kind::kFloat;
    case 5:
      return Kind::kString;
    case 6:
      return std::get<ListPtr>(data_)->tuple ? Kind::kTuple : Kind::kList;
    case 7:
      return Kind::kMapping;
    case 8:
      return Kind::kNamespace;
    case 9:
      return Kind::kFunction;
    case 10:
      return Kind::kMacro;
    case 11:
      return Kind::kLoop;
    default:
      return Kind::kFloat;  // spelled
  }
}

Whole Value::whole() const {
  if (const bool* truth = std::get_if<bool>(&data_)) return *truth ? 1 : 0;
  return std::get<Whole>(data_);
}

int64_t Value::integer() const {
  return static_cast<int64_t>(
      std::clamp<Whole>(whole(), std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max()));
}

double Value::number() const {
  if (const double* number = std::get_if<double>(&data_)) return *number;
  if (const auto* spelled = std::get_if<SpelledPtr>(&data_)) {
    return (*spelled)->value;
  }
  return static_cast<double>(whole());
}

absl::string_view Value::spelling() const {
  const auto* spelled = std::get_if<SpelledPtr>(&data_);
  return spelled == nullptr ? absl::string_view() : (*spelled)->text;
}

const Text& Value::text() const { return *std::get<TextPtr>(data_); }

const std::vector<Value>& Value::items() const {
  return std::get<ListPtr>(data_)->items;
}

const Entries& Value::entries() const {
  return std::get<MappingPtr>(data_)->entries;
}

const Value::Function& Value::function() const {
  return *std::get<FunctionPtr>(data_);
}

std::string Value::why_undefined() const {
  const auto& why = std::get<Undefined>(data_).why;
  return why == nullptr ? "the value is undefined" : *why;
}

bool Value::Truth() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return whole() != 0;
    case Kind::kFloat:
      return number() != 0;
    case Kind::kString:
      return !text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !items().empty() || std::get<ListPtr>(data_)->generator;
    case Kind::kMapping:
      return !entries().empty();
    case Kind::kLoop:
      return !loop().items.empty();
    default:
      return true;
  }
}

int Value::depth() const {
  if (const auto* list = std::get_if<ListPtr>(&data_)) return (*list)->depth;
  if (const auto* mapping = std::get_if<MappingPtr>(&data_)) {
    return (*mapping)->depth;
  }
  if (const auto* function = std::get_if<FunctionPtr>(&data_)) {
    return (*function)->depth;
  }
  if (const auto* loop = std::get_if<std::shared_ptr<LoopState>>(&data_)) {
    return (*loop)->items_depth;
  }
  return 0;
}

absl::string_view Value::TypeName() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kMapping:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kFunction:
      return "function";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
  }
  return "";
}

}  // namespace weft::jinja
