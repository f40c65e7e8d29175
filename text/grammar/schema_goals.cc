#include "text/grammar/schema_goals.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/schema_keywords.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxChoices = 64;           // along one way
constexpr size_t kMaxAlternatives = 500;  // of one value
constexpr size_t kMaxDropped = 50;
constexpr int kMaxOverlapping = 4;  // schemas of oneOf that one may meet

}  // namespace

uint8_t TypeOf(const Json& value) {
  if (value.is_null()) return kNullType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_number()) return kNumberType;
  if (value.is_string()) return kStringType;
  return value.is_array() ? kArrayType : kObjectType;
}

absl::Status SchemaGoals::status() const {
  return document_.status().ok() ? status_ : document_.status();
}

void SchemaGoals::Fail(absl::string_view place, absl::string_view why) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("JSON schema: ", place, ": ", why));
}

void SchemaGoals::Drop(absl::string_view place, absl::string_view what) {
  if (strict_) return Fail(place, what);
  std::string line = absl::StrCat(place, ": ", what);
  if (dropped_.size() < kMaxDropped && !Contains(dropped_, line)) {
    dropped_.push_back(std::move(line));
  }
}

GoalId SchemaGoals::Number(const SchemaPlace& at, bool negated,
                           const std::string& place) {
  const auto [it, is_new] =
      numbers_.try_emplace(std::make_tuple(at.schema, at.resource, negated),
                           static_cast<GoalId>(goals_.size()));
  if (is_new) goals_.push_back({at, negated, place});
  return it->second;
}

GoalId SchemaGoals::Root() { return Number(document_.root(), false, "#"); }

GoalId SchemaGoals::Contrary(GoalId goal) {
  const Goal& g = goals_[goal];
  const std::string place = g.place;
  return Number(g.at, !g.negated, place);
}

GoalId SchemaGoals::Below(GoalId of, const Json& schema,
                          const std::string& name, bool negated) {
  const Goal& g = goals_[of];
  const SchemaPlace at = SchemaDocument::Below(g.at, schema);
  return Number(at, negated, absl::StrCat(g.place, "/", name));
}

Goals SchemaGoals::With(Goals goals, std::optional<GoalId> more) {
  if (more.has_value() &&
      std::find(goals.begin(), goals.end(), *more) == goals.end()) {
    goals.push_back(*more);
  }
  return goals;
}

bool SchemaGoals::IsBelow(int32_t origin, int32_t above) const {
  for (; origin >= 0; origin = origins_[origin].parent) {
    if (origin == above) return true;
    // What is denied tells nothing of what it has seen.
    if (goals_[origins_[origin].goal].negated) return false;
  }
  return false;
}

std::vector<Alternative> SchemaGoals::Expand(const Goals& goals) {
  State state;
  state.made.numbers.open = open_;
  state.made.place = goals.empty() ? "#" : goals_[goals[0]].place;
  for (const GoalId goal : goals) state.todo.emplace_back(goal, -1);
  std::vector<Alternative> out;
  Run(std::move(state), &out, 0);
  return out;
}

void SchemaGoals::Run(State state, std::vector<Alternative>* out, int depth) {
  if (!status().ok()) return;
  if (depth > kMaxChoices || out->size() > kMaxAlternatives) {
    return Fail(state.made.place,
                "there are too many combinations of its choices: use fewer");
  }
  for (size_t i = 0; i < state.todo.size(); ++i) {
    const auto [goal, parent] = state.todo[i];
    // What holds if it holds: no way leads through it.
    for (int32_t above = parent; above >= 0; above = origins_[above].parent) {
      if (origins_[above].goal == goal) return;
    }
    if (!state.seen.insert(goal).second) continue;
    if (--work_left_ < 0) {
      return Fail(goals_[goal].place, "it takes too much work: simplify it");
    }
    const auto origin = static_cast<int32_t>(origins_.size());
    origins_.push_back({goal, parent});
    Apply(goal, origin, state);
    if (!status().ok() || state.made.types == 0) return;
  }
  state.todo.clear();
  if (state.choices.empty()) {
    Alternative& made = state.made;
    if (!open_ && !made.typed && made.mentioned != 0 && !made.values) {
      made.types &= made.mentioned;
    }
    if (made.numbers.none()) made.types &= static_cast<uint8_t>(~kNumberType);
    if (made.types == 0) return;
    out->push_back(std::move(made));
    return;
  }
  const auto [choice, origin] = std::move(state.choices.front());
  state.choices.erase(state.choices.begin());
  for (const Branch& branch : choice) {
    State next = state;
    if (branch.also) branch.also(next.made);
    if (next.made.types == 0) continue;
    for (const GoalId goal : branch.goals) next.todo.emplace_back(goal, origin);
    Run(std::move(next), out, depth + 1);
  }
}

void SchemaGoals::Apply(GoalId goal, int32_t origin, State& state) {
  const Json& schema = *goals_[goal].at.schema;
  const std::string place = goals_[goal].place;
  if (!schema.is_boolean() && !schema.is_object()) {
    return Fail(place, "a schema is an object");
  }
  if (goals_[goal].negated) {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) state.made.types = 0;
      return;
    }
    std::optional<Choice> contraries = Contraries(goal);
    if (!contraries.has_value()) {
      return Drop(place, "the contrary of this is not supported");
    }
    state.choices.emplace_back(*std::move(contraries), origin);
    return;
  }
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) state.made.types = 0;
    return;
  }
  for (const auto& entry : schema.items()) {
    const std::string& key = entry.key();
    const Json& value = entry.value();
    if (IsNote(key) || IsRead(key)) continue;
    const uint8_t family = FamilyOf(key);
    state.made.mentioned |= family;
    bool known = false;
    switch (family) {
      case kNumberType:
        known = ApplyNumber(goal, key, value, state.made);
        break;
      case kStringType:
        known = ApplyString(goal, key, value, state.made);
        break;
      case kArrayType:
        known = ApplyArray(goal, key, value, origin, state.made);
        break;
      case kObjectType:
        known = ApplyObject(goal, key, value, origin, state);
        break;
      default:
        known = ApplyGeneral(goal, key, value, origin, state);
    }
    if (!known)
      Drop(place, absl::StrCat("keyword '", key, "' is not supported"));
    if (!status().ok()) return;
  }
}

uint8_t SchemaGoals::Types(GoalId goal, const Json& value, bool* integer) {
  static constexpr std::pair<absl::string_view, uint8_t> kNames[] = {
      {"null", kNullType},     {"boolean", kBooleanType},
      {"number", kNumberType}, {"integer", kNumberType},
      {"string", kStringType}, {"array", kArrayType},
      {"object", kObjectType}};
  uint8_t types = 0;
  *integer = true;
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.empty()) Fail(place(goal), "type is an empty list");
  for (const Json& name : list) {
    uint8_t type = 0;
    for (const auto& [known, bit] : kNames) {
      if (name == std::string(known)) type = bit;
    }
    if (type == 0) {
      Fail(place(goal), absl::StrCat("type ", name.dump(), " is not known"));
    }
    if (name == "number") *integer = false;
    types |= type;
  }
  return types;
}

std::optional<GoalId> SchemaGoals::Target(GoalId goal, const Json& reference,
                                          bool dynamic) {
  if (!reference.is_string()) {
    Fail(place(goal), "$ref is no string");
    return std::nullopt;
  }
  const std::string text = reference;
  if (dynamic && document_.dynamic_anchors(text) > 1) {
    Drop(place(goal),
         "$dynamicRef to one of several anchors is not supported: use $ref");
    return std::nullopt;
  }
  const SchemaPlace found = document_.Find(goals_[goal].at, text);
  if (found.schema == nullptr) {
    if (text.empty() || text[0] == '#') {
      Fail(text, "is referred to, but is not there");
    } else {
      Drop(place(goal), absl::StrCat("$ref outside of the schema, '", text,
                                     "', is not supported"));
    }
    return std::nullopt;
  }
  return Number(found, false,
                !text.empty() && text[0] == '#' ? text : place(goal));
}

bool SchemaGoals::CheckList(GoalId goal, const std::string& key,
                            const Json& value) {
  if (value.is_array() && !value.empty()) return true;
  Fail(place(goal),
       absl::StrCat(key, key == "enum" ? " is no list of values"
                                       : " is no list of schemas"));
  return false;
}

bool SchemaGoals::ApplyGeneral(GoalId goal, const std::string& key,
                               const Json& value, int32_t origin,
                               State& state) {
  Alternative& made = state.made;
  const Json& schema = *goals_[goal].at.schema;
  if (key == "type") {
    bool integer = false;
    uint8_t types = Types(goal, value, &integer);
    const auto nullable = schema.find("nullable");
    if (nullable != schema.end() && *nullable == true) types |= kNullType;
    if ((types & kNumberType) != 0 && integer) made.numbers.whole = true;
    OnlyType(made, types);
  } else if (key == "const" || key == "enum") {
    if (key == "enum" && !CheckList(goal, key, value)) return true;
    const Json list = key == "enum" ? value : Json::array({value});
    std::vector<Json> kept;
    for (const Json& v : list) {
      const auto is_v = [&](const Json& other) { return other == v; };
      if (std::any_of(kept.begin(), kept.end(), is_v)) continue;
      if (!made.values ||
          std::any_of(made.values->begin(), made.values->end(), is_v)) {
        kept.push_back(v);
      }
    }
    if (kept.empty()) made.types = 0;
    made.values = std::move(kept);
  } else if (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") {
    if (const auto target = Target(goal, value, key != "$ref")) {
      state.todo.emplace_back(*target, origin);
    }
  } else if (key == "allOf") {
    if (!CheckList(goal, key, value)) return true;
    for (size_t i = 0; i < value.size(); ++i) {
      state.todo.emplace_back(Below(goal, value[i], absl::StrCat("allOf/", i)),
                              origin);
    }
  } else if (key == "anyOf") {
    if (!CheckList(goal, key, value)) return true;
    Choice choice;
    for (size_t i = 0; i < value.size(); ++i) {
      choice.push_back(
          {{Below(goal, value[i], absl::StrCat("anyOf/", i))}, nullptr});
    }
    state.choices.emplace_back(std::move(choice), origin);
  } else if (key == "oneOf") {
    if (!CheckList(goal, key, value)) return true;
    state.choices.emplace_back(OneOf(goal, value), origin);
  } else if (key == "not") {
    state.todo.emplace_back(Below(goal, value, "not", /*negated=*/true),
                            origin);
  } else if (key == "if") {
    Branch yes = {{Below(goal, value, "if")}, nullptr};
    Branch no = {{Below(goal, value, "if", /*negated=*/true)}, nullptr};
    bool matters = false;
    for (const auto& [name, branch] :
         {std::pair("then", &yes), std::pair("else", &no)}) {
      const auto found = schema.find(name);
      if (found == schema.end()) continue;
      branch->goals.push_back(Below(goal, *found, name));
      matters = true;
    }
    if (matters) {
      state.choices.emplace_back(Choice{std::move(yes), std::move(no)}, origin);
    }
  } else {
    return false;
  }
  return true;
}

SchemaGoals::Choice SchemaGoals::OneOf(GoalId goal, const Json& list) {
  Choice choice;
  std::vector<GoalId> all;
  for (size_t i = 0; i < list.size(); ++i) {
    all.push_back(Below(goal, list[i], absl::StrCat("oneOf/", i)));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    Branch branch = {{all[i]}, nullptr};
    int overlapping = 0;
    for (size_t j = 0; j < all.size() && status().ok(); ++j) {
      if (i == j || Disjoint(all[i], all[j])) continue;
      branch.goals.push_back(Contrary(all[j]));
      ++overlapping;
    }
    if (overlapping > kMaxOverlapping) {
      Drop(place(goal),
           "oneOf of schemas that overlap is kept as anyOf: give each a "
           "property with a constant");
      branch.goals.resize(1);
    }
    choice.push_back(std::move(branch));
  }
  return choice;
}

bool SchemaGoals::Disjoint(GoalId a, GoalId b) {
  const auto key = std::minmax(a, b);
  const auto found = disjoint_.find(key);
  if (found != disjoint_.end()) return found->second;
  disjoint_[key] = false;  // while it is being found out
  bool disjoint = true;
  // What is dropped here is dropped where it is used.
  std::vector<std::string> dropped = dropped_;
  for (const Alternative& both : Expand({a, b})) {
    if (!IsEmpty(both, 0)) disjoint = false;
  }
  dropped_ = std::move(dropped);
  disjoint_[key] = disjoint;
  return disjoint;
}

// Whether it is plain that no value fits.
bool SchemaGoals::IsEmpty(const Alternative& made, int depth) {
  if (made.types == 0) return true;
  if (made.values) {
    return std::none_of(
        made.values->begin(), made.values->end(), [&](const Json& value) {
          return (made.types & TypeOf(value)) != 0 &&
                 std::find(made.excluded.begin(), made.excluded.end(), value) ==
                     made.excluded.end() &&
                 (!value.is_number() || Fits(made.numbers, value));
        });
  }
  if (made.types == kNumberType && made.numbers.least && made.numbers.most) {
    const int order = Compare(made.numbers.least->at, made.numbers.most->at);
    return order > 0 || (order == 0 && (made.numbers.least->exclusive ||
                                        made.numbers.most->exclusive));
  }
  if (made.types != kObjectType) return false;
  for (const std::string& name : made.required) {
    if (Contains(made.forbidden, name)) return true;
    if (depth > 1) continue;
    Goals goals;
    for (const Alternative::Members& members : made.members) {
      bool declared = !members.patterns.empty();
      for (const auto& [property, goal] : members.properties) {
        if (property != name) continue;
        declared = true;
        goals = With(std::move(goals), goal);
      }
      if (!declared) goals = With(std::move(goals), members.others);
    }
    if (goals.size() < 2) {
      // One alone is nothing but false, if anything.
      if (goals.empty() || !goals_[goals[0]].at.schema->is_boolean()) continue;
    }
    const std::vector<Alternative> ways = Expand(goals);
    if (std::all_of(ways.begin(), ways.end(), [&](const Alternative& way) {
          return IsEmpty(way, depth + 1);
        })) {
      return true;
    }
  }
  return false;
}

int64_t SchemaGoals::Count(GoalId goal, const std::string& key,
                           const Json& value) {
  constexpr int64_t kMost = 1000000000000000;
  if (value.is_number() && value > kMost) return kMost;
  if (!value.is_number() || value < 0 ||
      value.get<double>() != static_cast<double>(value.get<int64_t>())) {
    Fail(place(goal), absl::StrCat(key, " must be a whole number from 0 on"));
    return 0;
  }
  return value.get<int64_t>();
}

std::optional<NumberRules::Bound> SchemaGoals::Bound(GoalId goal,
                                                     const std::string& key,
                                                     const Json& value) {
  NumberRules::Bound bound;
  const bool exclusive_key = absl::StartsWith(key, "exclusive");
  if (exclusive_key && value.is_boolean()) return std::nullopt;  // read beside
  const auto d = value.is_number() ? DecimalOf(value) : std::nullopt;
  if (!d.has_value()) {
    Fail(place(goal), absl::StrCat(key, " is no number"));
    return std::nullopt;
  }
  bound.at = *d;
  bound.exclusive = exclusive_key;
  const Json& schema = *goals_[goal].at.schema;
  const auto beside = schema.find(key == "minimum"   ? "exclusiveMinimum"
                                  : key == "maximum" ? "exclusiveMaximum"
                                                     : "");
  if (beside != schema.end() && *beside == true) bound.exclusive = true;
  return bound;
}

std::optional<Decimal> SchemaGoals::MultipleOf(GoalId goal, const Json& value) {
  const auto d = value.is_number() ? DecimalOf(value) : std::nullopt;
  if (!d.has_value() || d->negative || d->zero()) {
    Fail(place(goal), "multipleOf is no number above 0");
    return std::nullopt;
  }
  return d;
}

bool SchemaGoals::ApplyNumber(GoalId goal, const std::string& key,
                              const Json& value, Alternative& made) {
  if (key == "multipleOf") {
    if (const auto d = MultipleOf(goal, value)) {
      made.numbers.multiples.push_back(*d);
    }
    return true;
  }
  const bool least = key == "minimum" || key == "exclusiveMinimum";
  if (const auto bound = Bound(goal, key, value)) {
    Tighten(made.numbers, *bound, least);
  }
  return true;
}

bool SchemaGoals::ApplyString(GoalId goal, const std::string& key,
                              const Json& value, Alternative& made) {
  if (key == "minLength") {
    made.min_length = std::max(made.min_length, Count(goal, key, value));
  } else if (key == "maxLength") {
    AtMost(Count(goal, key, value), &made.max_length);
  } else if (!value.is_string()) {
    Fail(place(goal), absl::StrCat(key, " is no string"));
  } else if (key == "pattern") {
    made.texts.push_back({value, false, false, place(goal)});
  } else {
    const std::string name = value;
    if (name == "int32" || name == "int64") {
      // OpenAPI's, of numbers.
      const bool wide = name == "int64";
      for (const bool least : {true, false}) {
        const Json at = least ? (wide ? Json(INT64_MIN) : Json(INT32_MIN))
                              : (wide ? Json(INT64_MAX) : Json(INT32_MAX));
        Tighten(made.numbers, {*DecimalOf(at), false}, least);
      }
      made.mentioned |= kNumberType;
    } else if (name == "float" || name == "double" || name == "password" ||
               name == "binary") {
      made.mentioned |= kNumberType;  // notes
    } else {
      made.texts.push_back({name, true, false, place(goal)});
    }
  }
  return true;
}

bool SchemaGoals::ApplyArray(GoalId goal, const std::string& key,
                             const Json& value, int32_t origin,
                             Alternative& made) {
  const Json& schema = *goals_[goal].at.schema;
  if (key == "minItems") {
    made.min_items = std::max(made.min_items, Count(goal, key, value));
  } else if (key == "maxItems") {
    AtMost(Count(goal, key, value), &made.max_items);
  } else if (key == "uniqueItems") {
    if (!value.is_boolean()) Fail(place(goal), "uniqueItems is no boolean");
    if (value == true) made.unique = true;
  } else if (key == "unevaluatedItems") {
    made.unevaluated.push_back({Below(goal, value, key), origin, true});
  } else if (key == "contains") {
    Alternative::Contains contains = {Below(goal, value, key), 1, -1};
    if (schema.contains("minContains")) {
      contains.least = Count(goal, "minContains", schema["minContains"]);
    }
    if (schema.contains("maxContains")) {
      contains.most = Count(goal, "maxContains", schema["maxContains"]);
    }
    if (contains.least > 0 || contains.most >= 0) {
      made.contains.push_back(contains);
    }
  } else if (key == "items" && schema.contains("prefixItems") &&
             !value.is_array()) {
    return true;  // read with prefixItems
  } else {
    Alternative::Items items;
    items.origin = origin;
    const bool tuple = key == "prefixItems" || value.is_array();
    if (key == "prefixItems" && !value.is_array()) {
      Fail(place(goal), "prefixItems is no list");
      return true;
    }
    const std::string rest_key = !tuple                 ? "items"
                                 : key == "prefixItems" ? "items"
                                                        : "additionalItems";
    if (tuple) {
      for (size_t i = 0; i < value.size(); ++i) {
        items.prefix.push_back(
            Below(goal, value[i], absl::StrCat(key, "/", i)));
      }
    }
    const auto rest = schema.find(rest_key);
    if (rest != schema.end() && !rest->is_array()) {
      items.rest = Below(goal, *rest, rest_key);
    }
    made.items.push_back(std::move(items));
  }
  return true;
}

bool SchemaGoals::ApplyObject(GoalId goal, const std::string& key,
                              const Json& value, int32_t origin, State& state) {
  Alternative& made = state.made;
  const Json& schema = *goals_[goal].at.schema;
  if (key == "minProperties") {
    made.min_properties =
        std::max(made.min_properties, Count(goal, key, value));
  } else if (key == "maxProperties") {
    AtMost(Count(goal, key, value), &made.max_properties);
  } else if (key == "required") {
    // A boolean is what the third draft had: as if it were not there.
    if (!value.is_array()) {
      if (!value.is_boolean()) Fail(place(goal), "required is no list");
      return value.is_boolean() ? false : true;
    }
    for (const Json& name : value) {
      if (!name.is_string()) {
        Fail(place(goal), "required is no list of names");
        return true;
      }
      if (!Contains(made.required, name)) made.required.push_back(name);
    }
  } else if (key == "propertyNames") {
    made.names.push_back(Below(goal, value, key));
  } else if (key == "unevaluatedProperties") {
    made.unevaluated.push_back({Below(goal, value, key), origin, false});
  } else if (key == "dependentRequired" || key == "dependentSchemas" ||
             key == "dependencies") {
    if (!value.is_object()) {
      Fail(place(goal), absl::StrCat(key, " is no object"));
      return true;
    }
    for (const auto& entry : value.items()) {
      const std::string name = entry.key();
      Branch without = {
          {}, [name](Alternative& a) { a.forbidden.push_back(name); }};
      std::vector<std::string> wanted = {name};
      Branch with;
      if (entry.value().is_array()) {
        for (const Json& other : entry.value()) {
          if (other.is_string()) wanted.push_back(other);
        }
      } else {
        with.goals.push_back(
            Below(goal, entry.value(), absl::StrCat(key, "/", name)));
      }
      with.also = [wanted](Alternative& a) {
        OnlyType(a, kObjectType);
        for (const std::string& other : wanted) {
          if (!Contains(a.required, other)) a.required.push_back(other);
        }
      };
      state.choices.emplace_back(Choice{std::move(with), std::move(without)},
                                 origin);
    }
  } else {
    // Once for the three that speak of each other.
    for (const char* first :
         {"properties", "patternProperties", "additionalProperties"}) {
      if (!schema.contains(first)) continue;
      if (key != first) return true;
      break;
    }
    Alternative::Members members;
    members.origin = origin;
    for (const char* name : {"properties", "patternProperties"}) {
      const auto found = schema.find(name);
      if (found == schema.end()) continue;
      if (!found->is_object()) {
        Fail(place(goal), absl::StrCat(name, " is no object"));
        return true;
      }
      auto& list = name == std::string("properties") ? members.properties
                                                     : members.patterns;
      for (const auto& entry : found->items()) {
        list.emplace_back(
            entry.key(),
            Below(goal, entry.value(), absl::StrCat(name, "/", entry.key())));
      }
      members.declares = !members.properties.empty();
    }
    const auto others = schema.find("additionalProperties");
    if (others != schema.end()) {
      if (!others->is_boolean() && !others->is_object()) {
        Fail(place(goal), "additionalProperties is no schema");
        return true;
      }
      members.others = Below(goal, *others, "additionalProperties");
    }
    made.members.push_back(std::move(members));
  }
  return true;
}

}  // namespace weft::grammar
