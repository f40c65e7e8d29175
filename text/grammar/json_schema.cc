#include "text/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "text/grammar/json_terms.h"
#include "text/grammar/pattern.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxCount = 10000;
constexpr int64_t kMaxInteger = 999999999999999999;  // 18 digits

constexpr absl::string_view kNotes[] = {
    "$schema",  "$id",       "$comment",  "$defs",   "definitions",
    "title",    "default",   "examples",  "example", "description",
    "readOnly", "writeOnly", "deprecated"};
constexpr absl::string_view kKnown[] = {"type",
                                        "properties",
                                        "required",
                                        "additionalProperties",
                                        "items",
                                        "prefixItems",
                                        "minItems",
                                        "maxItems",
                                        "enum",
                                        "const",
                                        "anyOf",
                                        "oneOf",
                                        "allOf",
                                        "$ref",
                                        "minLength",
                                        "maxLength",
                                        "pattern",
                                        "format",
                                        "minimum",
                                        "maximum",
                                        "exclusiveMinimum",
                                        "exclusiveMaximum"};

template <typename Names>
bool IsAmong(const Names& names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Term TwoDigits(absl::string_view first, absl::string_view last) {
  const auto number = [](absl::string_view s) {
    return (s[0] - '0') * 10 + (s[1] - '0');
  };
  Term choice = Choice({});
  for (int i = number(first); i <= number(last); ++i) {
    choice.parts.push_back(Literal(absl::StrCat(i / 10, i % 10)));
  }
  return choice;
}

Term DigitsOf(int64_t count) {
  return Repeat(Class({{'0', '9'}}), count, count);
}

Term Date() {
  // Days that every month has: 31 April would be a date of no calendar.
  return Sequence(
      {DigitsOf(4), Literal("-"),
       Choice({Sequence({TwoDigits("01", "12"), Literal("-"),
                         TwoDigits("01", "28")}),
               Sequence({Choice({Literal("01"), Literal("03"), Literal("05"),
                                 Literal("07"), Literal("08"), Literal("10"),
                                 Literal("12")}),
                         Literal("-"), TwoDigits("29", "31")}),
               Sequence({Choice({Literal("04"), Literal("06"), Literal("09"),
                                 Literal("11")}),
                         Literal("-"), TwoDigits("29", "30")})})});
}

Term Time() {
  return Sequence(
      {TwoDigits("00", "23"), Literal(":"), TwoDigits("00", "59"), Literal(":"),
       TwoDigits("00", "59"),
       Optional(Sequence({Literal("."), Repeat(Class({{'0', '9'}}), 1, 9)})),
       Choice({Literal("Z"),
               Sequence({Class({{'+', '+'}, {'-', '-'}}), TwoDigits("00", "23"),
                         Literal(":"), TwoDigits("00", "59")})})});
}

Term Uuid() {
  const auto hex = [](int64_t count) {
    return Repeat(Class({{'0', '9'}, {'a', 'f'}}), count, count);
  };
  return Sequence({hex(8), Literal("-"), hex(4), Literal("-"), hex(4),
                   Literal("-"), hex(4), Literal("-"), hex(12)});
}

Term Ipv4() {
  const Term part = IntegerBetween(0, 255);
  return Sequence({part, Repeat(Sequence({Literal("."), part}), 3, 3)});
}

class Converter {
 public:
  explicit Converter(const Json& schema) : whole_(schema) {}

  absl::StatusOr<Syntax> Run() {
    syntax_.rules = CommonRules();
    Term root = Convert(whole_, "#", 0);
    syntax_.rules.push_back({"root", std::move(root)});
    // References may name further ones.
    while (!waiting_.empty() && status_.ok()) {
      const auto [pointer, rule] = waiting_.back();
      waiting_.pop_back();
      const Json* target = Find(pointer);
      if (target == nullptr) {
        Fail(absl::StrCat("#", pointer), "is referred to, but is not there");
        break;
      }
      syntax_.rules.push_back(
          {rule, Convert(*target, absl::StrCat("#", pointer), 0)});
    }
    if (!status_.ok()) return status_;
    return std::move(syntax_);
  }

 private:
  Term Fail(absl::string_view place, absl::string_view why) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("JSON schema: ", place, ": ", why));
    }
    return Sequence({});
  }

  // What a JSON pointer names; null if nothing.
  const Json* Find(const std::string& pointer) const {
    const Json* at = &whole_;
    for (size_t begin = 1; begin <= pointer.size();) {
      const size_t end = std::min(pointer.find('/', begin), pointer.size());
      const std::string key = absl::StrReplaceAll(
          pointer.substr(begin, end - begin), {{"~1", "/"}, {"~0", "~"}});
      if (!at->is_object() || !at->contains(key)) return nullptr;
      at = &(*at)[key];
      begin = end + 1;
    }
    return at;
  }

  Term Convert(const Json& schema, const std::string& place, int depth) {
    if (!status_.ok()) return Sequence({});
    if (depth > kMaxDepth) return Fail(place, "is nested too deeply");
    if (schema.is_boolean()) {
      return schema.get<bool>() ? Reference(kValueRule)
                                : Fail(place, "false allows nothing");
    }
    if (!schema.is_object()) return Fail(place, "a schema is an object");
    for (const auto& [key, value] : schema.items()) {
      if (!IsAmong(kKnown, key) && !IsAmong(kNotes, key)) {
        return Fail(place,
                    absl::StrCat("keyword '", key, "' is not supported"));
      }
    }
    if (schema.contains("$ref")) return ConvertReference(schema, place);
    if (schema.contains("const")) return Constant(schema["const"]);
    if (schema.contains("enum")) return Enum(schema["enum"], place);
    for (const char* key : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(key)) return Alternatives(schema, key, place, depth);
    }
    if (schema.contains("type") && schema["type"].is_array()) {
      Term choice = Choice({});
      for (const Json& type : schema["type"]) {
        choice.parts.push_back(OfType(type, schema, place, depth));
      }
      if (choice.parts.empty()) return Fail(place, "type is an empty list");
      return choice;
    }
    return OfType(schema.contains("type") ? schema["type"] : TypeOf(schema),
                  schema, place, depth);
  }

  static Json TypeOf(const Json& schema) {
    static constexpr std::pair<absl::string_view, const char*> kSigns[] = {
        {"properties", "object"},
        {"required", "object"},
        {"additionalProperties", "object"},
        {"items", "array"},
        {"prefixItems", "array"},
        {"minItems", "array"},
        {"maxItems", "array"},
        {"minLength", "string"},
        {"maxLength", "string"},
        {"pattern", "string"},
        {"format", "string"},
        {"minimum", "number"},
        {"maximum", "number"},
        {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"}};
    for (const auto& [key, type] : kSigns) {
      if (schema.contains(std::string(key))) return type;
    }
    return nullptr;
  }

  Term OfType(const Json& type, const Json& schema, const std::string& place,
              int depth) {
    if (type.is_null()) return Reference(kValueRule);
    if (type == "object") return Object(schema, place, depth);
    if (type == "array") return Array(schema, place, depth);
    if (type == "string") return String(schema, place);
    if (type == "integer") return Integer(schema, place);
    if (type == "number") return Number(schema, place);
    if (type == "boolean") return Choice({Literal("true"), Literal("false")});
    if (type == "null") return Literal("null");
    return Fail(place, absl::StrCat("type ", type.dump(), " is not known"));
  }

  Term ConvertReference(const Json& schema, const std::string& place) {
    for (const auto& [key, value] : schema.items()) {
      if (key != "$ref" && !IsAmong(kNotes, key)) {
        return Fail(place, absl::StrCat("keyword '", key,
                                        "' beside $ref is not supported"));
      }
    }
    const Json& target = schema["$ref"];
    if (!target.is_string()) return Fail(place, "$ref is no string");
    const std::string text = target;
    if (text != "#" && text.substr(0, 2) != "#/") {
      return Fail(place, "$ref outside of the schema is not supported");
    }
    if (text == "#") return Reference("root");
    const std::string pointer = text.substr(1);
    const auto [it, is_new] = references_.try_emplace(
        pointer, absl::StrCat("reference-", references_.size()));
    if (is_new) waiting_.emplace_back(pointer, it->second);
    return Reference(it->second);
  }

  static Term Constant(const Json& value) {
    return Literal(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  Term Enum(const Json& values, const std::string& place) {
    if (!values.is_array() || values.empty()) {
      return Fail(place, "enum is no list of values");
    }
    Term choice = Choice({});
    for (const Json& value : values) choice.parts.push_back(Constant(value));
    return choice;
  }

  Term Alternatives(const Json& schema, const std::string& keyword,
                    const std::string& place, int depth) {
    for (const auto& [key, value] : schema.items()) {
      if (key != keyword && key != "type" && !IsAmong(kNotes, key)) {
        return Fail(place, absl::StrCat("keyword '", key, "' beside ", keyword,
                                        " is not supported"));
      }
    }
    const Json& list = schema[keyword];
    if (!list.is_array() || list.empty()) {
      return Fail(place, absl::StrCat(keyword, " is no list of schemas"));
    }
    if (keyword == "allOf" && list.size() > 1) {
      return Fail(place, "allOf of several schemas is not supported");
    }
    Term choice = Choice({});
    for (size_t i = 0; i < list.size(); ++i) {
      choice.parts.push_back(Convert(
          list[i], absl::StrCat(place, "/", keyword, "/", i), depth + 1));
    }
    return choice;
  }

  // A count that is given, or the fallback.
  int64_t Count(const Json& schema, const char* key, int64_t fallback,
                const std::string& place) {
    if (!schema.contains(key)) return fallback;
    const Json& value = schema[key];
    if (!value.is_number_integer() || value < 0 || value > kMaxCount) {
      Fail(place,
           absl::StrCat(key, " must be a whole number from 0 to ", kMaxCount));
      return fallback;
    }
    return value;
  }

  std::string NewRule(Term term) {
    std::string name = absl::StrCat("part-", ++parts_);
    syntax_.rules.push_back({name, std::move(term)});
    return name;
  }

  Term Member(Term key, Term value) {
    return Sequence(
        {std::move(key), Space(), Literal(":"), Space(), std::move(value)});
  }

  Term Object(const Json& schema, const std::string& place, int depth) {
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    const Json additional = schema.value(
        "additionalProperties", Json(properties.empty() && required.empty()));
    if (!properties.is_object()) return Fail(place, "properties is no object");
    if (!required.is_array()) return Fail(place, "required is no list");
    std::vector<std::string> wanted;
    for (const Json& name : required) {
      if (!name.is_string()) return Fail(place, "required is no list of names");
      wanted.push_back(name);
    }
    std::vector<std::string> names;
    std::vector<Term> members;
    std::vector<bool> needed;
    for (const auto& [name, value] : properties.items()) {
      names.push_back(name);
      members.push_back(
          Member(Constant(name),
                 Convert(value, absl::StrCat(place, "/properties/", name),
                         depth + 1)));
      needed.push_back(IsAmong(wanted, name));
    }
    for (const std::string& name : wanted) {
      if (IsAmong(names, name)) continue;
      // Anything may stand there, but it must be there.
      names.push_back(name);
      members.push_back(Member(
          Constant(name),
          additional.is_object() || additional == true
              ? Convert(additional,
                        absl::StrCat(place, "/additionalProperties"), depth + 1)
              : Fail(place, absl::StrCat("'", name,
                                         "' is required and not allowed"))));
      needed.push_back(true);
    }
    Term more = Sequence({});
    bool has_more = false;
    if (additional.is_object() || additional == true) {
      has_more = true;
      for (const std::string& name : names) {
        if (name.size() > kMaxNameBytes) {
          return Fail(place, absl::StrCat("a name of more than ", kMaxNameBytes,
                                          " bytes needs additionalProperties "
                                          "to be false"));
        }
      }
      more = Member(
          names.empty() ? Reference(kStringRule) : StringBut(names),
          Convert(additional, absl::StrCat(place, "/additionalProperties"),
                  depth + 1));
    } else if (additional != false) {
      return Fail(place, "additionalProperties is no schema");
    }
    if (!status_.ok()) return Sequence({});
    return Sequence(
        {Literal("{"), Space(),
         Members(std::move(members), needed, std::move(more), has_more),
         Literal("}")});
  }

  // Members in order, those that are not needed perhaps left out, then more;
  // with commas between. Rules are shared, so that the size is linear: `after`
  // is what may follow something, `first` what may begin.
  Term Members(std::vector<Term> members, const std::vector<bool>& needed,
               Term more, bool has_more) {
    Term after = Space(), first = Sequence({});
    if (has_more) {
      const std::string member = NewRule(std::move(more));
      after = Sequence(
          {Repeat(Sequence({Comma(), Reference(member)}), 0), Space()});
      first = Optional(Sequence({Reference(member), after}));
    }
    for (size_t i = members.size(); i-- > 0;) {
      const std::string member = NewRule(std::move(members[i]));
      const std::string tail = NewRule(std::move(after));
      Term begin = Sequence({Reference(member), Reference(tail)});
      Term next = Sequence({Comma(), Reference(member), Reference(tail)});
      if (needed[i]) {
        first = std::move(begin);
        after = std::move(next);
      } else {
        first =
            Choice({std::move(begin), Reference(NewRule(std::move(first)))});
        after = Choice({std::move(next), Reference(tail)});
      }
    }
    return first;
  }

  Term Array(const Json& schema, const std::string& place, int depth) {
    const Json prefix = schema.value("prefixItems", Json::array());
    if (!prefix.is_array()) return Fail(place, "prefixItems is no list");
    const int64_t known = static_cast<int64_t>(prefix.size());
    int64_t most = Count(schema, "maxItems", Term::kUnlimited, place);
    const bool unlimited = most == Term::kUnlimited;
    const int64_t wanted = Count(schema, "minItems", 0, place);
    const Json items = schema.value("items", Json(known == 0));
    const bool has_items = items != false;
    if (!unlimited && wanted > most) {
      return Fail(place, "minItems is above maxItems");
    }
    if (!has_items && wanted > known) {
      return Fail(place, "minItems asks for more than there can be");
    }
    const int64_t fixed = unlimited ? known : std::min(known, most);
    std::vector<Term> parts = {Literal("["), Space()};
    for (int64_t i = 0; i < fixed; ++i) {
      if (i > 0) parts.push_back(Comma());
      parts.push_back(Convert(
          prefix[i], absl::StrCat(place, "/prefixItems/", i), depth + 1));
    }
    if (has_items && (unlimited || most > fixed)) {
      const std::string item =
          NewRule(Convert(items, absl::StrCat(place, "/items"), depth + 1));
      const int64_t least = std::max<int64_t>(0, wanted - fixed);
      const int64_t rest = unlimited ? Term::kUnlimited : most - fixed;
      const auto following = [&](int64_t from, int64_t to) {
        return Repeat(Sequence({Comma(), Reference(item)}), from, to);
      };
      if (fixed > 0) {
        parts.push_back(following(least, rest));
      } else {
        Term list =
            Sequence({Reference(item),
                      following(std::max<int64_t>(0, least - 1),
                                unlimited ? Term::kUnlimited : rest - 1)});
        parts.push_back(least > 0 ? std::move(list)
                                  : Optional(std::move(list)));
      }
    }
    parts.push_back(Space());
    parts.push_back(Literal("]"));
    return Sequence(std::move(parts));
  }

  Term String(const Json& schema, const std::string& place) {
    const bool sized =
        schema.contains("minLength") || schema.contains("maxLength");
    for (const char* key : {"pattern", "format"}) {
      if (!schema.contains(key)) continue;
      if (!schema[key].is_string()) {
        return Fail(place, absl::StrCat(key, " is no string"));
      }
      if (sized || (schema.contains("pattern") && schema.contains("format"))) {
        return Fail(place, absl::StrCat("'", key,
                                        "' beside another restriction of the "
                                        "text is not supported"));
      }
    }
    if (schema.contains("pattern")) {
      absl::StatusOr<Term> inside =
          ParsePattern(schema["pattern"].get_ref<const std::string&>());
      if (!inside.ok()) return Fail(place, inside.status().message());
      return Quoted(*std::move(inside));
    }
    if (schema.contains("format")) return Format(schema["format"], place);
    if (!sized) return Reference(kStringRule);
    const int64_t least = Count(schema, "minLength", 0, place);
    const int64_t most = Count(schema, "maxLength", Term::kUnlimited, place);
    if (most != Term::kUnlimited && least > most) {
      return Fail(place, "minLength is above maxLength");
    }
    return Quoted(Repeat(Reference(kCharacterRule), least, most));
  }

  Term Format(const std::string& name, const std::string& place) {
    if (name == "date") return Quoted(Date());
    if (name == "time") return Quoted(Time());
    if (name == "date-time") {
      return Quoted(Sequence({Date(), Literal("T"), Time()}));
    }
    if (name == "uuid") return Quoted(Uuid());
    if (name == "ipv4") return Quoted(Ipv4());
    return Fail(place,
                absl::StrCat("format '", name,
                             "' is not supported: use date, time, date-time, "
                             "uuid, ipv4 or a pattern"));
  }

  // The whole number at a bound; nullopt where there is none.
  std::optional<int64_t> Bound(const Json& schema, const char* inclusive,
                               const char* exclusive, bool lower,
                               const std::string& place) {
    std::optional<int64_t> bound;
    for (const char* key : {inclusive, exclusive}) {
      if (!schema.contains(key)) continue;
      if (!schema[key].is_number()) {
        Fail(place, absl::StrCat(key, " is no number"));
        return std::nullopt;
      }
      const double value = schema[key];
      const double whole = lower ? std::ceil(value) : std::floor(value);
      int64_t at = std::clamp<int64_t>(std::fabs(whole) < 1e18
                                           ? static_cast<int64_t>(whole)
                                       : whole < 0 ? -kMaxInteger
                                                   : kMaxInteger,
                                       -kMaxInteger, kMaxInteger);
      // A double does not hold every number of 18 digits.
      if (schema[key].is_number_integer() && std::fabs(whole) < 1e18) {
        at = schema[key].get<int64_t>();
      }
      if (key == exclusive && whole == value) at += lower ? 1 : -1;
      if (!bound.has_value()) bound = at;
      bound = lower ? std::max(*bound, at) : std::min(*bound, at);
    }
    return bound;
  }

  Term Integer(const Json& schema, const std::string& place) {
    const auto least =
        Bound(schema, "minimum", "exclusiveMinimum", true, place);
    const auto most =
        Bound(schema, "maximum", "exclusiveMaximum", false, place);
    if (!least.has_value() && !most.has_value()) {
      return Reference(kIntegerRule);
    }
    const int64_t low = least.value_or(-kMaxInteger);
    const int64_t high = most.value_or(kMaxInteger);
    if (low > high) return Fail(place, "no whole number is within the bounds");
    return IntegerBetween(low, high);
  }

  Term Number(const Json& schema, const std::string& place) {
    for (const char* key :
         {"maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (schema.contains(key)) {
        return Fail(place, absl::StrCat("keyword '", key,
                                        "' of a number is not supported: use "
                                        "integers"));
      }
    }
    if (!schema.contains("minimum")) return Reference(kNumberRule);
    if (schema["minimum"] != 0) {
      return Fail(place,
                  "keyword 'minimum' of a number is only supported as "
                  "0: use integers");
    }
    return Reference(kNaturalNumberRule);
  }

  const Json& whole_;
  Syntax syntax_;
  std::map<std::string, std::string> references_;  // pointer to rule
  std::vector<std::pair<std::string, std::string>> waiting_;
  int parts_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Syntax> FromJsonSchema(const nlohmann::ordered_json& schema) {
  return Converter(schema).Run();
}

Syntax AnyJsonObject() {
  Syntax syntax;
  syntax.rules = CommonRules();
  syntax.rules.push_back({"root", Reference(kObjectRule)});
  return syntax;
}

}  // namespace weft::grammar
