// Schemas that do not hold: one of the contraries of their keywords does.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/grammar/formats.h"
#include "text/grammar/schema_goals.h"
#include "text/grammar/schema_keywords.h"

namespace weft::grammar {

using Json = nlohmann::ordered_json;

std::optional<SchemaGoals::Choice> SchemaGoals::Contraries(GoalId goal) {
  const Json& schema = *goals_[goal].at.schema;
  Choice choice;
  for (const auto& entry : schema.items()) {
    if (IsNote(entry.key()) || IsRead(entry.key())) continue;
    if (!AddContrary(goal, entry.key(), entry.value(), &choice)) {
      return std::nullopt;
    }
  }
  return choice;
}

bool SchemaGoals::AddContrary(GoalId goal, const std::string& key,
                              const Json& value, Choice* choice) {
  const Json& schema = *goals_[goal].at.schema;
  const auto add = [&](std::function<void(Alternative&)> also) {
    choice->push_back({{}, std::move(also)});
  };
  const auto only = [](uint8_t type, auto also) {
    return [type, also](Alternative& made) {
      OnlyType(made, type);
      also(made);
    };
  };
  const auto below = [&](const Json& of, const std::string& name,
                         bool negated) {
    return Below(goal, of, name, negated);
  };
  if (key == "$ref" || key == "$dynamicRef") {
    const auto target = Target(goal, value, key != "$ref");
    if (!target) return false;
    choice->push_back({{Contrary(*target)}, nullptr});
  } else if (key == "allOf" || key == "anyOf" || key == "oneOf") {
    if (!CheckList(goal, key, value)) return false;
    std::vector<GoalId> holds, fails;
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string name = absl::StrCat(key, "/", i);
      holds.push_back(below(value[i], name, false));
      fails.push_back(below(value[i], name, true));
    }
    if (key == "allOf") {
      for (const GoalId g : fails) choice->push_back({{g}, nullptr});
      return true;
    }
    choice->push_back({fails, nullptr});
    if (key == "anyOf") return true;
    if (holds.size() > 6) return false;
    for (size_t i = 0; i < holds.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        choice->push_back({{holds[i], holds[j]}, nullptr});
      }
    }
  } else if (key == "not") {
    choice->push_back({{below(value, "not", false)}, nullptr});
  } else if (key == "if") {
    for (const auto& [name, fails] :
         {std::pair("then", false), std::pair("else", true)}) {
      const auto found = schema.find(name);
      if (found == schema.end()) continue;
      choice->push_back(
          {{below(value, "if", fails), below(*found, name, true)}, nullptr});
    }
  } else if (key == "type") {
    bool integer = false;
    const uint8_t types = Types(goal, value, &integer);
    add([types](Alternative& made) { OnlyType(made, kAllTypes & ~types); });
    if ((types & kNumberType) != 0 && integer) {
      add(only(kNumberType,
               [](Alternative& made) { made.numbers.fractional = true; }));
    }
  } else if (key == "const" || key == "enum") {
    if (key == "enum" && !CheckList(goal, key, value)) return false;
    const Json list = key == "enum" ? value : Json::array({value});
    add([list](Alternative& made) {
      made.excluded.insert(made.excluded.end(), list.begin(), list.end());
    });
  } else if (key == "multipleOf") {
    const auto d = MultipleOf(goal, value);
    if (!d) return false;
    add(only(kNumberType, [d](Alternative& made) {
      made.numbers.no_multiples.push_back(*d);
    }));
  } else if (FamilyOf(key) == kNumberType) {
    auto bound = Bound(goal, key, value);
    if (!bound) return status().ok();
    const bool least = key == "minimum" || key == "exclusiveMinimum";
    bound->exclusive = !bound->exclusive;
    add(only(kNumberType, [bound, least](Alternative& made) {
      Tighten(made.numbers, *bound, !least);
    }));
  } else if (key == "minLength" || key == "minItems" ||
             key == "minProperties") {
    const int64_t count = Count(goal, key, value);
    if (count == 0) return true;
    add(only(FamilyOf(key), [key, count](Alternative& made) {
      AtMost(count - 1, key == "minLength"  ? &made.max_length
                        : key == "minItems" ? &made.max_items
                                            : &made.max_properties);
    }));
  } else if (key == "maxLength" || key == "maxItems" ||
             key == "maxProperties") {
    const int64_t count = Count(goal, key, value);
    add(only(FamilyOf(key), [key, count](Alternative& made) {
      int64_t& held = key == "maxLength"  ? made.min_length
                      : key == "maxItems" ? made.min_items
                                          : made.min_properties;
      held = std::max(held, count + 1);
    }));
  } else if (key == "pattern" || key == "format") {
    if (!value.is_string()) return false;
    const Alternative::Text text = {value, key == "format", true, place(goal)};
    if (text.is_format && FormatPattern(text.pattern).empty()) return false;
    add(only(kStringType,
             [text](Alternative& made) { made.texts.push_back(text); }));
  } else if (key == "uniqueItems") {
    return value == false;
  } else if (key == "items" && !value.is_array() &&
             !schema.contains("prefixItems")) {
    const GoalId item = below(value, "items", true);
    add(only(kArrayType, [item](Alternative& made) {
      made.contains.push_back({item, 1, -1});
    }));
  } else if (key == "prefixItems" || (key == "items" && value.is_array())) {
    if (!value.is_array() || schema.contains("additionalItems") ||
        (key == "prefixItems" && schema.contains("items"))) {
      return false;
    }
    for (size_t i = 0; i < value.size(); ++i) {
      Alternative::Items items;
      for (size_t j = 0; j < i; ++j) {
        items.prefix.push_back(
            below(value[j], absl::StrCat(key, "/", j), false));
      }
      items.prefix.push_back(below(value[i], absl::StrCat(key, "/", i), true));
      items.origin = -1;
      add(only(kArrayType, [items](Alternative& made) {
        made.items.push_back(items);
        made.min_items = std::max<int64_t>(
            made.min_items, static_cast<int64_t>(items.prefix.size()));
      }));
    }
  } else if (key == "contains") {
    const GoalId item = below(value, "contains", false);
    int64_t least = 1;
    if (schema.contains("minContains")) {
      least = Count(goal, "minContains", schema["minContains"]);
    }
    if (least > 0) {
      add(only(kArrayType, [item, least](Alternative& made) {
        made.contains.push_back({item, 0, least - 1});
      }));
    }
    if (schema.contains("maxContains")) {
      const int64_t most = Count(goal, "maxContains", schema["maxContains"]);
      add(only(kArrayType, [item, most](Alternative& made) {
        made.contains.push_back({item, most + 1, -1});
      }));
    }
  } else if (key == "required") {
    if (!value.is_array()) return false;
    for (const Json& name : value) {
      if (!name.is_string()) return false;
      const std::string text = name;
      add(only(kObjectType,
               [text](Alternative& made) { made.forbidden.push_back(text); }));
    }
  } else if (key == "properties") {
    if (!value.is_object()) return false;
    for (const auto& entry : value.items()) {
      Alternative::Members members;
      members.origin = -1;
      const std::string name = entry.key();
      members.properties.emplace_back(
          name, below(entry.value(), absl::StrCat(key, "/", name), true));
      add(only(kObjectType, [members, name](Alternative& made) {
        made.members.push_back(members);
        if (!Contains(made.required, name)) made.required.push_back(name);
      }));
    }
  } else if (key == "additionalProperties" && value == true) {
    return true;
  } else if (key == "dependentRequired") {
    if (!value.is_object()) return false;
    for (const auto& entry : value.items()) {
      for (const Json& other : entry.value()) {
        if (!other.is_string()) return false;
        const std::string name = entry.key(), missing = other;
        add(only(kObjectType, [name, missing](Alternative& made) {
          if (!Contains(made.required, name)) made.required.push_back(name);
          made.forbidden.push_back(missing);
        }));
      }
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace weft::grammar
