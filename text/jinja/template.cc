#include "text/jinja/template.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "text/jinja/context.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/limits.h"
#include "text/jinja/parser.h"
#include "text/json_tree.h"

namespace weft::jinja {
namespace {

using Json = nlohmann::ordered_json;

// How much work a value stands for: its characters, and a few for each item.
// Stops counting at a depth that Convert refuses.
int64_t Weight(const Json& json, int depth = 0) {
  if (json.is_string()) {
    return static_cast<int64_t>(json.get_ref<const std::string&>().size());
  }
  int64_t weight = 16;
  if (json.is_binary()) {  // a number as it is spelled
    weight += static_cast<int64_t>(json.get_binary().size());
  }
  if (depth > kMaxValueDepth || !json.is_structured()) return weight;
  for (const auto& [key, item] : json.items()) {
    weight += static_cast<int64_t>(key.size()) + Weight(item, depth + 1);
  }
  return weight;
}

class Converter {
 public:
  Converter(Context& context, const Variable& variable)
      : context_(context), variable_(variable) {}

  Value Convert(const Json& json, int depth = 0) {
    if (!context_.CheckValueDepth(depth)) return Value();
    switch (json.type()) {
      case Json::value_t::null:
        return Value::MakeNone();
      case Json::value_t::boolean:
        return Value(json.get<bool>());
      case Json::value_t::number_integer:
        return Value(json.get<int64_t>());
      case Json::value_t::number_unsigned:
        return Value(Whole{json.get<uint64_t>()});
      case Json::value_t::number_float:
        return Value(json.get<double>());
      case Json::value_t::string:
        return String(json.get_ref<const std::string&>());
      case Json::value_t::array: {
        std::vector<Value> items;
        for (const Json& item : json) items.push_back(Convert(item, depth + 1));
        return Value::MakeList(context_, std::move(items));
      }
      case Json::value_t::object: {
        Entries entries;
        for (const auto& [key, item] : json.items()) {
          entries.emplace_back(String(key),
                               IsTrustedRole(key, item)
                                   ? Value(FromUtf8(StringOf(item)))
                                   : Convert(item, depth + 1));
        }
        return Value::MakeMapping(context_, std::move(entries));
      }
      default:
        return IsSpelledNumber(json) ? Value::Number(SpellingOf(json))
                                     : Value();
    }
  }

 private:
  Value String(absl::string_view text) const {
    return Value(FromUtf8(text, variable_.marked));
  }

  static const std::string& StringOf(const Json& json) {
    return json.get_ref<const std::string&>();
  }

  bool IsTrustedRole(absl::string_view key, const Json& value) const {
    const absl::Span<const absl::string_view> roles = variable_.trusted_roles;
    return key == "role" && value.is_string() &&
           std::find(roles.begin(), roles.end(), StringOf(value)) !=
               roles.end();
  }

  Context& context_;
  const Variable& variable_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Template>> Template::Parse(
    absl::string_view source) {
  std::unique_ptr<Template> made(new Template);
  made->source_size_ = source.size();
  WEFT_ASSIGN_OR_RETURN(Block block, ParseTemplate(source));
  made->block_ = std::move(block);
  return made;
}

absl::StatusOr<Text> Template::Render(const std::vector<Variable>& variables,
                                      absl::Time now) const {
  int64_t weight = static_cast<int64_t>(source_size_);
  int64_t pairs = 0;
  for (const Variable& variable : variables) {
    weight += Weight(variable.value);
    if (!variable.value.is_array()) continue;
    const int64_t items =
        std::min<int64_t>(variable.value.size(), kMostPairs / 4);
    pairs = std::min(pairs + items * items, kMostPairs);
  }
  weight = std::min(
      weight, std::numeric_limits<int64_t>::max() / (2 * kWorkPerCharacter));
  Context context(kBaseWork + kWorkPerCharacter * weight + kWorkPerPair * pairs,
                  now);
  Interpreter interpreter(context);
  for (const Variable& variable : variables) {
    interpreter.SetVariable(
        variable.name, Converter(context, variable).Convert(variable.value));
  }
  Text text = interpreter.Run(block_);
  if (context.failed()) return context.status();
  return text;
}

}  // namespace weft::jinja
