// A plain validator of JSON Schema, keyword by keyword, to compare grammars
// with: nothing of it is shared with what it checks. Only the keywords that
// schema_property_test.cc writes; $ref of "#/$defs/NAME"; patterns of ASCII.
#pragma once

#include <cmath>
#include <regex>
#include <string>

#include "nlohmann/json.hpp"

namespace weft::grammar {

class Validator {
 public:
  using Json = nlohmann::ordered_json;

  explicit Validator(const Json& schema) : root_(schema) {}

  bool operator()(const Json& value) const { return Valid(root_, value); }

 private:
  static bool IsOfType(const Json& value, const std::string& type) {
    if (type == "integer") {
      return value.is_number() &&
             std::floor(value.get<double>()) == value.get<double>();
    }
    return (type == "null" && value.is_null()) ||
           (type == "boolean" && value.is_boolean()) ||
           (type == "number" && value.is_number()) ||
           (type == "string" && value.is_string()) ||
           (type == "array" && value.is_array()) ||
           (type == "object" && value.is_object());
  }

  static bool Matches(const std::string& text, const std::string& pattern) {
    return std::regex_search(text, std::regex(pattern));
  }

  bool Valid(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& entry : schema.items()) {
      if (!Holds(schema, entry.key(), entry.value(), value)) return false;
    }
    return true;
  }

  bool Holds(const Json& schema, const std::string& key, const Json& k,
             const Json& value) const {
    const auto count = [&](const Json& schemas) {
      int n = 0;
      for (const Json& s : schemas) n += Valid(s, value) ? 1 : 0;
      return n;
    };
    if (key == "$ref") {
      return Valid(root_["$defs"][k.get<std::string>().substr(8)], value);
    }
    if (key == "type") {
      if (k.is_string()) return IsOfType(value, k);
      for (const Json& type : k) {
        if (IsOfType(value, type)) return true;
      }
      return false;
    }
    if (key == "const") return value == k;
    if (key == "enum") {
      for (const Json& one : k) {
        if (value == one) return true;
      }
      return false;
    }
    if (key == "allOf") return count(k) == static_cast<int>(k.size());
    if (key == "anyOf") return count(k) > 0;
    if (key == "oneOf") return count(k) == 1;
    if (key == "not") return !Valid(k, value);
    if (key == "if") {
      const char* then = Valid(k, value) ? "then" : "else";
      return !schema.contains(then) || Valid(schema[then], value);
    }
    if (value.is_number()) return HoldsNumber(key, k, value.get<double>());
    if (value.is_string()) return HoldsString(key, k, value);
    if (value.is_array()) return HoldsArray(schema, key, k, value);
    if (value.is_object()) return HoldsObject(schema, key, k, value);
    return true;
  }

  static bool HoldsNumber(const std::string& key, const Json& k, double v) {
    if (key == "minimum") return v >= k.get<double>();
    if (key == "maximum") return v <= k.get<double>();
    if (key == "exclusiveMinimum") return v > k.get<double>();
    if (key == "exclusiveMaximum") return v < k.get<double>();
    if (key != "multipleOf") return true;
    // Multiples of quarters and of whole numbers are exact.
    return std::fmod(v, k.get<double>()) == 0;
  }

  static bool HoldsString(const std::string& key, const Json& k,
                          const std::string& v) {
    size_t length = 0;  // in characters
    for (const char c : v) length += (c & 0xC0) == 0x80 ? 0 : 1;
    if (key == "minLength") return length >= k.get<size_t>();
    if (key == "maxLength") return length <= k.get<size_t>();
    return key != "pattern" || Matches(v, k);
  }

  bool HoldsArray(const Json& schema, const std::string& key, const Json& k,
                  const Json& v) const {
    if (key == "minItems") return v.size() >= k.get<size_t>();
    if (key == "maxItems") return v.size() <= k.get<size_t>();
    if (key == "prefixItems" || key == "items") {
      const size_t prefix =
          schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
      for (size_t i = 0; i < v.size(); ++i) {
        if (key == "items" && i >= prefix && !Valid(k, v[i])) return false;
        if (key != "items" && i < prefix && !Valid(k[i], v[i])) return false;
      }
      return true;
    }
    if (key == "uniqueItems" && k == true) {
      for (size_t i = 0; i < v.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (v[i] == v[j]) return false;
        }
      }
    }
    if (key == "contains") {
      size_t n = 0;
      for (const Json& item : v) n += Valid(k, item) ? 1 : 0;
      return n >= schema.value("minContains", size_t{1}) &&
             n <= schema.value("maxContains", size_t{1000000});
    }
    return true;
  }

  bool HoldsObject(const Json& schema, const std::string& key, const Json& k,
                   const Json& v) const {
    if (key == "minProperties") return v.size() >= k.get<size_t>();
    if (key == "maxProperties") return v.size() <= k.get<size_t>();
    if (key == "required") {
      for (const Json& name : k) {
        if (!v.contains(name.get<std::string>())) return false;
      }
    }
    if (key == "dependentRequired" || key == "dependentSchemas") {
      for (const auto& entry : k.items()) {
        if (!v.contains(entry.key())) continue;
        if (key == "dependentSchemas") {
          if (!Valid(entry.value(), v)) return false;
          continue;
        }
        for (const Json& name : entry.value()) {
          if (!v.contains(name.get<std::string>())) return false;
        }
      }
    }
    for (const auto& member : v.items()) {
      const std::string& name = member.key();
      bool listed =
          schema.contains("properties") && schema["properties"].contains(name);
      if (key == "properties" && listed && !Valid(k[name], member.value())) {
        return false;
      }
      const Json patterns = schema.value("patternProperties", Json::object());
      for (const auto& pattern : patterns.items()) {
        if (!Matches(name, pattern.key())) continue;
        listed = true;
        if (key == "patternProperties" &&
            !Valid(pattern.value(), member.value())) {
          return false;
        }
      }
      if (key == "additionalProperties" && !listed &&
          !Valid(k, member.value())) {
        return false;
      }
      if (key == "propertyNames" && !Valid(k, Json(name))) return false;
    }
    return true;
  }

  const Json root_;
};

}  // namespace weft::grammar
