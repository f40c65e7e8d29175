#include "text/grammar/schema_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/grammar/formats.h"
#include "text/grammar/pattern.h"
#include "text/jinja/text.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxPatterns = 8;  // of names, in one object
constexpr int64_t kMaxLength = 10000;

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const StringLanguage* SchemaValues::Pattern(const std::string& pattern,
                                            bool is_format,
                                            const std::string& place,
                                            bool usual) {
  const auto [it, is_new] = patterns_.try_emplace({pattern, is_format, usual});
  if (is_new) {
    const std::string source =
        is_format ? FormatPattern(pattern, usual) : pattern;
    if (is_format && source.empty()) {
      goals_->Drop(place, absl::StrCat("format '", pattern,
                                       "' is not supported: use a pattern, or "
                                       "one of ",
                                       kFormats));
      return nullptr;
    }
    auto made = ParsePattern(source, budget_);
    if (made.ok()) {
      it->second = *std::move(made);
    } else {
      goals_->Drop(place, made.status().message());
    }
  }
  return it->second.has_value() ? &*it->second : nullptr;
}

StringLanguage SchemaValues::TextsOf(const Alternative& way) {
  StringLanguage made = StringLanguage::All();
  const auto restrict = [&](const StringLanguage& other, bool without,
                            absl::string_view what) {
    auto both =
        without ? made.ButNot(other, budget_) : made.And(other, budget_);
    if (both.ok()) {
      made = *std::move(both);
    } else {
      goals_->Drop(way.place, absl::StrCat(what, " ", both.status().message()));
    }
  };
  for (const Alternative::Text& text : way.texts) {
    // Less is generated than is valid, but what is denied is all of it.
    const bool usual = text.is_format && !text.negated && !way.numbers.open;
    const StringLanguage* language =
        Pattern(text.pattern, text.is_format, text.place, usual);
    if (language == nullptr) continue;
    restrict(*language, text.negated, text.is_format ? "format" : "pattern");
  }
  std::vector<std::string> excluded;
  for (const Json& value : way.excluded) {
    if (value.is_string()) excluded.push_back(value);
  }
  if (!excluded.empty()) {
    restrict(StringLanguage::OneOf(excluded), true, "what is not to be");
  }
  if (way.min_length > 0 || way.max_length >= 0) {
    restrict(StringLanguage::Lengths(
                 std::min(way.min_length, kMaxLength),
                 way.max_length < 0 ? Term::kUnlimited
                                    : std::min(way.max_length, kMaxLength)),
             false, "length beside the pattern");
  }
  return made;
}

// ---- lists

SchemaValues::Shape SchemaValues::ShapeOf(const Alternative& way) const {
  Shape shape;
  bool has_rest = false, declares = false;
  for (const Alternative::Items& items : way.items) {
    shape.known = std::max(shape.known, items.prefix.size());
    if (items.rest.has_value()) has_rest = true;
    if (items.origin >= 0 && !items.prefix.empty()) declares = true;
  }
  for (const Alternative::Unevaluated& other : way.unevaluated) {
    if (other.of_items) has_rest = true;
  }
  shape.closed = !way.numbers.open && declares && !has_rest;
  return shape;
}

Goals SchemaValues::ItemGoals(const Alternative& way, size_t at) const {
  Goals goals;
  for (const Alternative::Items& items : way.items) {
    if (at < items.prefix.size()) {
      goals = SchemaGoals::With(std::move(goals), items.prefix[at]);
    } else {
      goals = SchemaGoals::With(std::move(goals), items.rest);
    }
  }
  for (const Alternative::Unevaluated& other : way.unevaluated) {
    if (!other.of_items) continue;
    const bool evaluated =
        std::any_of(way.items.begin(), way.items.end(), [&](const auto& items) {
          return (at < items.prefix.size() || items.rest.has_value()) &&
                 goals_->IsBelow(items.origin, other.origin);
        });
    if (!evaluated) goals = SchemaGoals::With(std::move(goals), other.goal);
  }
  return goals;
}

std::optional<std::vector<Json>> SchemaValues::AllOf(const Goals& goals) {
  if (goals.empty()) return std::nullopt;
  std::vector<Json> all;
  for (const Alternative& way : goals_->Expand(goals)) {
    std::vector<Json> values;
    if (way.values) {
      values = *way.values;
    } else if ((way.types & ~(kNullType | kBooleanType)) == 0) {
      values = {nullptr, true, false};
    } else {
      return std::nullopt;
    }
    for (Json& value : values) {
      if (!Fits(way, value)) continue;
      if (std::find(all.begin(), all.end(), value) == all.end()) {
        all.push_back(std::move(value));
      }
    }
  }
  return all;
}

// ---- objects

bool SchemaValues::IsClosed(const Alternative& way) const {
  if (way.numbers.open) return false;
  bool declares = false;
  for (const Alternative::Members& members : way.members) {
    if (members.others.has_value()) return false;
    if (members.declares) declares = true;
  }
  for (const Alternative::Unevaluated& other : way.unevaluated) {
    if (!other.of_items) return false;
  }
  return declares;
}

template <typename Matches>
Goals SchemaValues::NameGoals(const Alternative& way, const std::string* name,
                              Matches matches, bool* known) const {
  Goals goals;
  std::vector<bool> speaks;  // of each of way.members: whether of this name
  *known = false;
  for (const Alternative::Members& members : way.members) {
    bool listed = false;
    if (name != nullptr) {
      for (const auto& [property, goal] : members.properties) {
        if (property != *name) continue;
        listed = true;
        goals = SchemaGoals::With(std::move(goals), goal);
      }
    }
    for (const auto& [pattern, goal] : members.patterns) {
      if (!matches(pattern)) continue;
      listed = true;
      goals = SchemaGoals::With(std::move(goals), goal);
    }
    if (listed) *known = true;
    if (!listed) goals = SchemaGoals::With(std::move(goals), members.others);
    speaks.push_back(listed || members.others.has_value());
  }
  for (const Alternative::Unevaluated& other : way.unevaluated) {
    if (other.of_items) continue;
    bool evaluated = false;
    for (size_t i = 0; i < way.members.size(); ++i) {
      if (speaks[i] && goals_->IsBelow(way.members[i].origin, other.origin)) {
        evaluated = true;
      }
    }
    if (!evaluated) goals = SchemaGoals::With(std::move(goals), other.goal);
  }
  return goals;
}

std::optional<Goals> SchemaValues::MemberGoals(const Alternative& way,
                                               const std::string& name) {
  bool known = false;
  Goals goals = NameGoals(
      way, &name,
      [&](const std::string& pattern) {
        const StringLanguage* language = Pattern(pattern, false, way.place);
        return language != nullptr && language->Has(name);
      },
      &known);
  if (!known && IsClosed(way) && !Holds(way.required, name)) {
    return std::nullopt;
  }
  return goals;
}

Goals SchemaValues::ValueGoals(const Alternative& way,
                               const std::string& name) {
  return MemberGoals(way, name).value_or(Goals());
}

uint8_t SchemaValues::TypesOf(const Goals& goals) {
  uint8_t types = 0;
  for (const Alternative& way : goals_->Expand(goals)) {
    if (!way.values) types |= way.types;
    for (const Json& value : way.values.value_or(std::vector<Json>())) {
      if (Fits(way, value)) types |= grammar::TypeOf(value);
    }
  }
  return types;
}

uint8_t SchemaValues::MemberTypes(const std::vector<Alternative>& ways,
                                  const std::string& name) {
  uint8_t types = 0;
  for (const Alternative& way : ways) {
    if ((way.types & kObjectType) == 0) continue;
    if (!way.values) {
      if (const auto goals = MemberGoals(way, name)) types |= TypesOf(*goals);
    }
    for (const Json& value : way.values.value_or(std::vector<Json>())) {
      if (!value.is_object() || !value.contains(name)) continue;
      types |= grammar::TypeOf(value[name]);
    }
  }
  return types;
}

bool SchemaValues::MemberMayBe(const std::vector<Alternative>& ways,
                               const std::string& name, const Json& value) {
  return std::any_of(ways.begin(), ways.end(), [&](const Alternative& way) {
    if ((way.types & kObjectType) == 0) return false;
    if (!way.values) {
      const auto goals = MemberGoals(way, name);
      return goals.has_value() && FitsAll(*goals, value);
    }
    return std::any_of(way.values->begin(), way.values->end(),
                       [&](const Json& object) {
                         return object.is_object() && object.contains(name) &&
                                object[name] == value;
                       });
  });
}

StringLanguage SchemaValues::TextsOf(const Goals& goals,
                                     const std::string& place,
                                     absl::string_view what) {
  StringLanguage all;
  for (const Alternative& way : goals_->Expand(goals)) {
    if ((way.types & kStringType) == 0) continue;
    StringLanguage texts;
    if (way.values) {
      std::vector<std::string> names;
      for (const Json& value : *way.values) {
        if (value.is_string() && Fits(way, value)) names.push_back(value);
      }
      texts = StringLanguage::OneOf(names);
    } else {
      texts = TextsOf(way);
    }
    auto both = all.Or(texts, budget_);
    if (both.ok()) {
      all = *std::move(both);
    } else {
      goals_->Drop(place, absl::StrCat(what, " ", both.status().message()));
      return StringLanguage::All();
    }
  }
  return all;
}

SchemaValues::Names SchemaValues::NamesOf(const Alternative& way) {
  Names made;
  std::vector<StringLanguage> allowed;
  for (const GoalId goal : way.names) {
    allowed.push_back(TextsOf({goal}, goals_->place(goal), "propertyNames"));
  }
  std::vector<std::string> listed;
  const auto add = [&](const std::string& name) {
    if (Holds(listed, name)) return;
    listed.push_back(name);
    bool may_be = !Holds(way.forbidden, name);
    for (const StringLanguage& names : allowed) {
      if (!names.Has(name)) may_be = false;
    }
    if (may_be) {
      made.declared.push_back(name);
    } else if (Holds(way.required, name)) {
      made.impossible = name;
    }
  };
  for (const Alternative::Members& members : way.members) {
    for (const auto& property : members.properties) add(property.first);
  }
  for (const std::string& name : way.required) add(name);
  for (const std::string& name : way.forbidden) add(name);

  std::vector<std::string> patterns;
  for (const Alternative::Members& members : way.members) {
    for (const auto& [pattern, goal] : members.patterns) {
      if (Holds(patterns, pattern)) continue;
      if (Pattern(pattern, false, goals_->place(goal)) == nullptr) continue;
      if (patterns.size() == kMaxPatterns) {
        goals_->Drop(goals_->place(goal),
                     "so many patterns of names are not supported");
        continue;
      }
      patterns.push_back(pattern);
    }
  }
  const bool closed = IsClosed(way);
  if (closed && patterns.empty()) return made;
  if (patterns.empty() && listed.empty() && allowed.empty()) {
    bool known = false;
    const auto never = [](const std::string&) { return false; };
    made.free.push_back({true, {}, NameGoals(way, nullptr, never, &known)});
    return made;
  }
  const auto too_much = [&](const absl::Status& status) {
    goals_->Fail(way.place,
                 absl::StrCat("the set of other names ", status.message()));
  };
  // By which patterns they match and which not.
  std::vector<std::pair<StringLanguage, std::vector<std::string>>> classes;
  auto all =
      StringLanguage::All().ButNot(StringLanguage::OneOf(listed), budget_);
  for (const StringLanguage& names : allowed) {
    if (all.ok()) all = all->And(names, budget_);
  }
  if (!all.ok()) {
    too_much(all.status());
    return made;
  }
  classes.emplace_back(*std::move(all), std::vector<std::string>());
  for (const std::string& pattern : patterns) {
    const StringLanguage& language = *Pattern(pattern, false, way.place);
    std::vector<std::pair<StringLanguage, std::vector<std::string>>> next;
    for (auto& [names, matched] : classes) {
      auto with = names.And(language, budget_);
      auto without = names.ButNot(language, budget_);
      if (!with.ok() || !without.ok()) {
        too_much(OverBudget());
        return made;
      }
      if (!without->empty()) next.emplace_back(*std::move(without), matched);
      if (with->empty()) continue;
      matched.push_back(pattern);
      next.emplace_back(*std::move(with), std::move(matched));
    }
    classes = std::move(next);
  }
  for (auto& [names, matched] : classes) {
    if (names.empty()) continue;
    bool known = false;
    Goals goals = NameGoals(
        way, nullptr,
        [&, &matched = matched](const std::string& pattern) {
          return Holds(matched, pattern);
        },
        &known);
    if (closed && !known) continue;
    made.free.push_back({false, std::move(names), std::move(goals)});
  }
  return made;
}

// ---- values

bool SchemaValues::FitsAll(const Goals& goals, const Json& value, int depth) {
  const std::vector<Alternative> ways = goals_->Expand(goals);
  return std::any_of(ways.begin(), ways.end(), [&](const Alternative& way) {
    return Fits(way, value, depth);
  });
}

bool SchemaValues::Fits(const Alternative& way, const Json& value, int depth) {
  if (depth > kMaxDepth || (way.types & TypeOf(value)) == 0) return false;
  const auto is_value = [&](const Json& other) { return other == value; };
  if (way.values &&
      std::none_of(way.values->begin(), way.values->end(), is_value)) {
    return false;
  }
  if (std::any_of(way.excluded.begin(), way.excluded.end(), is_value)) {
    return false;
  }
  const auto size = static_cast<int64_t>(value.size());
  if (value.is_number()) return grammar::Fits(way.numbers, value);
  if (value.is_string()) {
    const std::string text = value;
    const auto length = static_cast<int64_t>(jinja::FromUtf8(text).size());
    if (length < way.min_length ||
        (way.max_length >= 0 && length > way.max_length)) {
      return false;
    }
    return std::all_of(
        way.texts.begin(), way.texts.end(), [&](const auto& asked) {
          const StringLanguage* language =
              Pattern(asked.pattern, asked.is_format, asked.place);
          return language == nullptr || language->Has(text) != asked.negated;
        });
  }
  if (value.is_array()) {
    if (size < way.min_items || (way.max_items >= 0 && size > way.max_items)) {
      return false;
    }
    for (size_t i = 0; i < value.size(); ++i) {
      if (!FitsAll(ItemGoals(way, i), value[i], depth + 1)) return false;
      for (size_t j = 0; j < i && way.unique; ++j) {
        if (value[i] == value[j]) return false;
      }
    }
    return std::all_of(
        way.contains.begin(), way.contains.end(), [&](const auto& kind) {
          const int64_t count =
              std::count_if(value.begin(), value.end(), [&](const Json& item) {
                return FitsAll({kind.goal}, item, depth + 1);
              });
          return count >= kind.least && (kind.most < 0 || count <= kind.most);
        });
  }
  if (!value.is_object()) return true;
  if (size < way.min_properties ||
      (way.max_properties >= 0 && size > way.max_properties)) {
    return false;
  }
  for (const std::string& name : way.required) {
    if (!value.contains(name)) return false;
  }
  for (const std::string& name : way.forbidden) {
    if (value.contains(name)) return false;
  }
  for (const auto& entry : value.items()) {
    if (!FitsAll(ValueGoals(way, entry.key()), entry.value(), depth + 1)) {
      return false;
    }
    for (const GoalId goal : way.names) {
      if (!FitsAll({goal}, entry.key(), depth + 1)) return false;
    }
  }
  return true;
}

}  // namespace weft::grammar
