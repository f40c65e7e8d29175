// What a value must fulfil, of a JSON schema in which keywords refer to, join,
// choose among and deny other schemas.
//
// Idea: a goal is a schema that holds, or one that does not. A value's goals
// are expanded: $ref and allOf are further goals; anyOf, oneOf, if, not and
// what depends on a property are choices. Each way through the choices is an
// Alternative: plain lists of what is asked of types, numbers, strings, lists
// and objects, in which what stands below is goals again. So any keywords stand
// side by side, and a denied schema is one of the contraries of its keywords.
//
// What an alternative does not hold is named (Dropped); it then allows more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "text/grammar/schema_document.h"
#include "text/grammar/schema_numbers.h"

namespace weft::grammar {

using GoalId = int32_t;
using Goals = std::vector<GoalId>;  // all of them; in order, none twice

// Types as bits.
enum : uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kNumberType = 4,
  kStringType = 8,
  kArrayType = 16,
  kObjectType = 32,
  kAllTypes = 63,
};
uint8_t TypeOf(const nlohmann::ordered_json& value);

struct Alternative {
  uint8_t types = kAllTypes;
  bool typed = false;     // some schema names types
  uint8_t mentioned = 0;  // of which keywords speak
  std::optional<std::vector<nlohmann::ordered_json>> values;  // one of these
  std::vector<nlohmann::ordered_json> excluded;
  NumberRules numbers;

  // What a text must match, or not.
  struct Text {
    std::string pattern;
    bool is_format = false, negated = false;
    std::string place;
  };
  std::vector<Text> texts;
  int64_t min_length = 0, max_length = -1;  // -1: no limit

  struct Items {
    std::vector<GoalId> prefix;
    std::optional<GoalId> rest;
    int32_t origin;
  };
  struct Contains {
    GoalId goal;
    int64_t least, most;  // -1: no limit
  };
  std::vector<Items> items;
  std::vector<Contains> contains;
  int64_t min_items = 0, max_items = -1;
  bool unique = false;

  struct Members {
    std::vector<std::pair<std::string, GoalId>> properties;
    std::vector<std::pair<std::string, GoalId>> patterns;
    std::optional<GoalId> others;
    int32_t origin;
    bool declares = false;  // properties as a schema lists them
  };
  std::vector<Members> members;
  std::vector<std::string> required, forbidden;
  std::vector<GoalId> names;
  int64_t min_properties = 0, max_properties = -1;

  // Of what no other schema at or below the same place speaks.
  struct Unevaluated {
    GoalId goal;
    int32_t origin;
    bool of_items;
  };
  std::vector<Unevaluated> unevaluated;

  std::string place;  // of the first goal
};

class SchemaGoals {
 public:
  // `schema` must outlive it. `open`, `strict`: see SchemaOptions.
  SchemaGoals(const nlohmann::ordered_json& schema, bool open, bool strict)
      : document_(schema), open_(open), strict_(strict) {}

  // The first error, if any: what no schema may be, or, if strict, what would
  // have been dropped.
  absl::Status status() const;
  const std::vector<std::string>& dropped() const { return dropped_; }
  // Notes that something is not kept.
  void Drop(absl::string_view place, absl::string_view what);
  void Fail(absl::string_view place, absl::string_view why);

  GoalId Root();
  GoalId Contrary(GoalId goal);
  const std::string& place(GoalId goal) const { return goals_[goal].place; }

  // The ways in which all goals hold; none where they cannot.
  std::vector<Alternative> Expand(const Goals& goals);
  static Goals With(Goals goals, std::optional<GoalId> more);

  // Whether a way that leads from `origin` goes through `above`.
  bool IsBelow(int32_t origin, int32_t above) const;

 private:
  using Json = nlohmann::ordered_json;
  struct Goal {
    SchemaPlace at;
    bool negated;
    std::string place;
  };
  // One of the ways in which a choice can be made.
  struct Branch {
    Goals goals;
    std::function<void(Alternative&)> also;
  };
  using Choice = std::vector<Branch>;
  struct Origin {
    GoalId goal;
    int32_t parent;
  };
  struct State {
    Alternative made;
    std::vector<std::pair<GoalId, int32_t>> todo;  // and where from
    std::set<GoalId> seen;
    std::vector<std::pair<Choice, int32_t>> choices;
  };

  GoalId Number(const SchemaPlace& at, bool negated, const std::string& place);
  GoalId Below(GoalId of, const Json& schema, const std::string& name,
               bool negated = false);
  void Run(State state, std::vector<Alternative>* out, int depth);

  // Each adds what one schema says to the state. False for keywords that are
  // not of the family.
  void Apply(GoalId goal, int32_t origin, State& state);
  bool ApplyGeneral(GoalId goal, const std::string& key, const Json& value,
                    int32_t origin, State& state);
  bool ApplyNumber(GoalId goal, const std::string& key, const Json& value,
                   Alternative& made);
  bool ApplyString(GoalId goal, const std::string& key, const Json& value,
                   Alternative& made);
  bool ApplyArray(GoalId goal, const std::string& key, const Json& value,
                  int32_t origin, Alternative& made);
  bool ApplyObject(GoalId goal, const std::string& key, const Json& value,
                   int32_t origin, State& state);
  // The contraries of a schema; nothing where one cannot be said.
  std::optional<Choice> Contraries(GoalId goal);
  bool AddContrary(GoalId goal, const std::string& key, const Json& value,
                   Choice* choice);
  Choice OneOf(GoalId goal, const Json& list);
  bool Disjoint(GoalId a, GoalId b);
  bool IsEmpty(const Alternative& made, int depth);

  std::optional<GoalId> Target(GoalId goal, const Json& reference,
                               bool dynamic);
  int64_t Count(GoalId goal, const std::string& key, const Json& value);
  std::optional<NumberRules::Bound> Bound(GoalId goal, const std::string& key,
                                          const Json& value);
  std::optional<Decimal> MultipleOf(GoalId goal, const Json& value);
  uint8_t Types(GoalId goal, const Json& value, bool* integer);
  bool CheckList(GoalId goal, const std::string& key, const Json& value);

  const SchemaDocument document_;
  const bool open_, strict_;
  absl::Status status_;
  std::vector<std::string> dropped_;
  std::vector<Goal> goals_;
  std::map<std::tuple<const Json*, const Json*, bool>, GoalId> numbers_;
  std::vector<Origin> origins_;
  std::map<std::pair<GoalId, GoalId>, bool> disjoint_;
  int64_t work_left_ = 200000;  // schemas that are applied
};

}  // namespace weft::grammar
