#include "text/grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "text/grammar/formats.h"
#include "text/grammar/json_terms.h"
#include "text/grammar/member_types.h"
#include "text/grammar/pattern.h"
#include "text/grammar/rule_properties.h"
#include "text/grammar/schema_goals.h"
#include "text/grammar/schema_numbers.h"
#include "text/grammar/schema_values.h"
#include "text/grammar/string_language.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxCount = 10000;
constexpr size_t kMaxRules = 20000;  // of which many may be left out
constexpr size_t kMaxStates = 3000;  // of one list or object that counts
constexpr size_t kAnyOrder = 5;      // properties
constexpr size_t kMaxValues = 60;    // of a list without repetitions
constexpr size_t kAnyOrderValues = 6;
constexpr size_t kMaxTextStates = 12000;  // of a text between markers
constexpr size_t kLeastClosing = 2;  // bytes of a marker that are looked for

std::string Text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Rules for states that are found while rules are written: one for each.
template <typename State>
class StateRules {
 public:
  // `parts`: how many rules have a number for a name.
  explicit StateRules(int* parts) : parts_(parts) {}

  // The rule of a state, which is to be written if it is new.
  Term To(const State& state) {
    const auto [it, is_new] = names_.try_emplace(state);
    if (is_new) {
      it->second = absl::StrCat("part-", ++*parts_);
      work_.push_back(state);
    }
    return Reference(it->second);
  }
  const std::string& Name(const State& state) const { return names_.at(state); }

  // States whose rules are to be written.
  bool done() const { return work_.empty(); }
  State Next() {
    State state = std::move(work_.back());
    work_.pop_back();
    return state;
  }

 private:
  int* const parts_;
  std::map<State, std::string> names_;
  std::vector<State> work_;
};

class Converter {
 public:
  Converter(const Json& schema, const SchemaOptions& options)
      : open_(options.open),
        form_(options.members),
        goals_(schema, options.open, options.strict),
        values_(&goals_, &budget_) {}

  absl::StatusOr<Syntax> Run() {
    WEFT_RETURN_IF_ERROR(goals_.status());
    syntax_.rules =
        CommonRules(open_, form_ == nullptr || form_->slash_escapes);
    const std::string first =
        form_ == nullptr ? RuleFor({goals_.Root()}) : NewRule(RootMembers());
    while (!waiting_.empty() && goals_.status().ok()) {
      const auto [what, rule] = std::move(waiting_.back());
      waiting_.pop_back();
      Term term = OfGoals(what.first, what.second);
      syntax_.rules.push_back({rule, std::move(term)});
    }
    syntax_.rules.push_back({"root", Reference(first)});
    WEFT_RETURN_IF_ERROR(goals_.status());
    if (!LeaveOutImpossible(&syntax_)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "JSON schema: ", nothing_.empty()
                               ? "#: allows nothing that can never end"
                               : nothing_));
    }
    syntax_.dropped = goals_.dropped();
    return std::move(syntax_);
  }

 private:
  // What no text can be; the first reason is told if that is all of the schema.
  Term Nothing(absl::string_view place, absl::string_view why) {
    if (nothing_.empty()) nothing_ = absl::StrCat(place, ": ", why);
    return Choice({});
  }

  std::string NewRule(Term term) {
    CheckSize();
    std::string name = absl::StrCat("part-", ++parts_);
    syntax_.rules.push_back({name, std::move(term)});
    return name;
  }

  // What is made is bounded before it is compiled (rule_properties.h).
  void CheckSize() {
    if (syntax_.rules.size() > kMaxRules) {
      goals_.Fail("#", "it is too large: use fewer choices or properties");
    }
  }

  // Of values of these types only.
  std::string RuleFor(const Goals& goals, uint8_t types = kAllTypes) {
    if (goals.empty() && types == kAllTypes) return kValueRule;
    const auto [it, is_new] = rules_.try_emplace(
        {goals, types}, absl::StrCat("value-", rules_.size()));
    if (is_new) waiting_.emplace_back(it->first, it->second);
    return it->second;
  }

  Term OfGoals(const Goals& goals, uint8_t types) {
    Term choice = Choice({});
    for (Alternative& way : goals_.Expand(goals)) {
      CheckSize();
      way.types &= types;
      AddWay(way, &choice);
      if (!goals_.status().ok()) return choice;
    }
    if (choice.parts.empty()) {
      return Nothing(goals.empty() ? "#" : goals_.place(goals[0]),
                     "allows nothing: what fits contradicts itself or can "
                     "never end");
    }
    return choice;
  }

  void AddWay(const Alternative& way, Term* choice) {
    const auto add = [&](Term term) {
      choice->parts.push_back(std::move(term));
    };
    if (way.values) {
      for (const Json& value : *way.values) {
        if (values_.Fits(way, value)) add(Constant(value));
      }
      return;
    }
    const auto excluded = [&](const Json& value) {
      return std::find(way.excluded.begin(), way.excluded.end(), value) !=
             way.excluded.end();
    };
    if (way.types == kAllTypes && IsFree(way))
      return add(Reference(kValueRule));
    if ((way.types & kObjectType) != 0) add(Object(way));
    if ((way.types & kArrayType) != 0) add(Array(way));
    if ((way.types & kStringType) != 0) add(String(way));
    if ((way.types & kNumberType) != 0) add(Number(way));
    if ((way.types & kBooleanType) != 0) {
      for (const bool value : {true, false}) {
        if (!excluded(value)) add(Literal(value ? "true" : "false"));
      }
    }
    if ((way.types & kNullType) != 0 && !excluded(nullptr)) {
      add(Literal("null"));
    }
    CheckExcluded(way);
  }

  void CheckExcluded(const Alternative& way) {
    for (const Json& value : way.excluded) {
      if (value.is_structured() && (way.types & TypeOf(value)) != 0) {
        goals_.Drop(way.place,
                    "a list or object that is not to be is not "
                    "supported");
      }
    }
  }

  static bool IsFree(const Alternative& way) {
    return way.mentioned == 0 && way.excluded.empty() && way.numbers.any() &&
           !way.numbers.whole && way.texts.empty() && way.min_length == 0 &&
           way.max_length < 0 && way.items.empty() && way.contains.empty() &&
           way.min_items == 0 && way.max_items < 0 && !way.unique &&
           way.members.empty() && way.required.empty() &&
           way.forbidden.empty() && way.names.empty() &&
           way.min_properties == 0 && way.max_properties < 0 &&
           way.unevaluated.empty();
  }

  Term Constant(const Json& value) {
    if (value.is_number() && open_) {
      if (const auto number = DecimalOf(value)) {
        return Choice({NumberTexts(*number), Literal(Text(value))});
      }
    }
    if (!value.is_structured() || value.empty()) return Literal(Text(value));
    const bool is_object = value.is_object();
    std::vector<Term> parts = {Literal(is_object ? "{" : "["), Space()};
    for (const auto& entry : value.items()) {
      if (parts.size() > 2) parts.push_back(Comma());
      Term inner = Constant(entry.value());
      parts.push_back(is_object
                          ? Member(Literal(Text(entry.key())), std::move(inner))
                          : std::move(inner));
    }
    parts.push_back(Space());
    parts.push_back(Literal(is_object ? "}" : "]"));
    return Sequence(std::move(parts));
  }

  // A minimum that can be counted to, and a maximum that is.
  int64_t Least(int64_t count, const char* key, const std::string& place) {
    if (count > kMaxCount) {
      goals_.Fail(place, absl::StrCat(key, " must be at most ", kMaxCount));
    }
    return std::min(count, kMaxCount);
  }

  Term Number(const Alternative& way) {
    NumberRules rules = way.numbers;
    for (const Json& value : way.excluded) {
      if (!value.is_number()) continue;
      if (const auto number = DecimalOf(value)) {
        rules.excluded.push_back(*number);
      } else {
        goals_.Drop(way.place, "a number of hundreds of digits is not known");
      }
    }
    if (rules.any()) {
      if (!rules.whole) return Reference(kNumberRule);
      if (!open_) return Reference(kIntegerRule);
      return Sequence(
          {Reference(kIntegerRule),
           Optional(Sequence({Literal("."), Repeat(Class({{'0', '0'}}), 1)}))});
    }
    if (rules.least && rules.least->at.zero() && !rules.least->exclusive &&
        !rules.whole && !rules.fractional && !rules.most &&
        rules.multiples.empty() && rules.no_multiples.empty() &&
        rules.excluded.empty()) {
      return Reference(kNaturalNumberRule);
    }
    auto made = NumbersOf(rules, &budget_);
    if (!made.ok()) {
      goals_.Drop(way.place,
                  absl::StrCat("multipleOf ", made.status().message()));
      rules.multiples.clear();
      rules.no_multiples.clear();
      made = NumbersOf(rules, &budget_);
      if (!made.ok()) {
        goals_.Fail(way.place, "its numbers take too much work: simplify them");
        return Choice({});
      }
    }
    if (made->empty()) {
      return Nothing(way.place, "no number is within the bounds");
    }
    return made->Texts();
  }

  Term String(const Alternative& way) {
    const int64_t least = Least(way.min_length, "minLength", way.place);
    const int64_t most = way.max_length < 0
                             ? Term::kUnlimited
                             : std::min(way.max_length, kMaxCount);
    if (most != Term::kUnlimited && least > most) {
      return Nothing(way.place, "minLength is above maxLength");
    }
    const bool sized = least > 0 || most != Term::kUnlimited;
    const bool excluded =
        std::any_of(way.excluded.begin(), way.excluded.end(),
                    [](const Json& value) { return value.is_string(); });
    if (way.texts.empty() && !excluded) {
      if (!sized) return Reference(kStringRule);
      return Quoted(Repeat(Reference(kCharacterRule), least, most));
    }
    if (way.texts.size() == 1 && !sized && !excluded &&
        !way.texts[0].is_format && !way.texts[0].negated) {
      auto inside = PatternInJson(way.texts[0].pattern, &budget_);
      if (inside.ok()) {
        const bool never = inside->kind == Term::kChoice;
        return never ? Nothing(way.place, "no text matches the pattern")
                     : Quoted(*std::move(inside));
      }
    }
    const StringLanguage language = values_.TextsOf(way);
    if (language.empty()) {
      return Nothing(way.place, "no text is all that is asked for");
    }
    return Quoted(language.JsonTexts());
  }

  // ---- lists

  Term Array(const Alternative& way) {
    const SchemaValues::Shape shape = values_.ShapeOf(way);
    const auto known = static_cast<int64_t>(shape.known);
    int64_t least = Least(way.min_items, "minItems", way.place);
    int64_t most = way.max_items < 0 ? Term::kUnlimited
                                     : std::min(way.max_items, kMaxCount);
    if (most != Term::kUnlimited && least > most) {
      return Nothing(way.place, "minItems is above maxItems");
    }
    if (shape.closed) {
      most = most == Term::kUnlimited ? known : std::min(most, known);
      if (least > most) {
        return Nothing(way.place, "minItems asks for more than there can be");
      }
      least = std::max(least, most);
    }
    if (way.unique && (most == Term::kUnlimited || most > 1)) {
      if (auto made = UniqueItems(way, shape, least, most)) {
        return *std::move(made);
      }
    }
    if (!way.contains.empty()) {
      if (auto made = ContainingItems(way, shape, least, most)) {
        return *std::move(made);
      }
    }
    if (known == 0) {
      const std::string item = RuleFor(values_.ItemGoals(way, 0));
      return InBrackets(Listed(item, least, most));
    }
    // What may follow after so many, from the last one on.
    const int64_t fixed =
        most == Term::kUnlimited ? known : std::min(known, most);
    Term after = Space();
    if (most == Term::kUnlimited || most > known) {
      const std::string item = RuleFor(values_.ItemGoals(way, shape.known));
      after = Sequence({Repeat(Sequence({Comma(), Reference(item)}),
                               std::max<int64_t>(0, least - known),
                               most == Term::kUnlimited ? most : most - known),
                        Space()});
    }
    for (int64_t i = fixed; i-- > 0;) {
      Term next = Reference(RuleFor(values_.ItemGoals(way, i)));
      next = i > 0 ? Sequence({Comma(), std::move(next), std::move(after)})
                   : Sequence({std::move(next), std::move(after)});
      if (least > i) {
        after = std::move(next);
      } else {
        after = Reference(
            NewRule(Choice({std::move(next), i > 0 ? Space() : Sequence({})})));
      }
      if (i % 16 == 15) after = Reference(NewRule(std::move(after)));
    }
    return InBrackets(std::move(after));
  }

  static Term InBrackets(Term inside) {
    return Sequence({Literal("["), Space(), std::move(inside), Literal("]")});
  }

  // From `least` to `most` of one kind, and the space behind them.
  Term Listed(const std::string& item, int64_t least, int64_t most) {
    if (most == 0) return Sequence({});
    Term list = Sequence({Reference(item),
                          Repeat(Sequence({Comma(), Reference(item)}),
                                 std::max<int64_t>(0, least - 1),
                                 most == Term::kUnlimited ? most : most - 1),
                          Space()});
    return least > 0 ? std::move(list) : Optional(std::move(list));
  }

  // One item after others, or the first.
  static Term Item(bool first, Term item, Term between = Comma()) {
    return first ? std::move(item)
                 : Sequence({std::move(between), std::move(item)});
  }

  // A list of values that are all known, none twice: those that are left, or,
  // of many, those behind the last one.
  std::optional<Term> UniqueItems(const Alternative& way,
                                  const SchemaValues::Shape& shape,
                                  int64_t least, int64_t most) {
    const auto drop = [&](absl::string_view why) {
      goals_.Drop(way.place, absl::StrCat("uniqueItems ", why));
      return std::nullopt;
    };
    std::vector<Json> values;
    for (size_t i = 0; i <= shape.known; ++i) {
      if (i == shape.known && shape.closed) break;
      const auto more = values_.AllOf(values_.ItemGoals(way, i));
      if (!more)
        return drop("of items that are no enumeration is not supported");
      for (const Json& value : *more) {
        if (std::find(values.begin(), values.end(), value) == values.end()) {
          values.push_back(value);
        }
      }
    }
    if (values.size() > kMaxValues) {
      return drop(absl::StrCat("of more than ", kMaxValues,
                               " values is not supported"));
    }
    if (!way.contains.empty()) return drop("beside contains is not supported");
    const bool any_order = values.size() <= kAnyOrderValues;
    const auto count = static_cast<int64_t>(values.size());
    if (most == Term::kUnlimited || most > count) most = count;
    if (least > count) {
      return Nothing(way.place, "minItems asks for more than there can be");
    }
    // By how many there are, and which (any order), or behind which.
    StateRules<std::pair<int64_t, uint64_t>> by_state(&parts_);
    Term start = by_state.To({0, 0});
    std::map<std::pair<size_t, size_t>, bool> fits;  // position, value
    while (!by_state.done()) {
      const auto [written, taken] = by_state.Next();
      Term choice = Choice({});
      if (written >= least) {
        choice.parts.push_back(written > 0 ? Space() : Sequence({}));
      }
      const size_t position =
          std::min(static_cast<size_t>(written), shape.known);
      for (size_t v = 0; v < values.size() && written < most; ++v) {
        const bool is_taken = any_order ? (taken >> v & 1) != 0 : v < taken;
        if (is_taken) continue;
        const auto [it, is_new] = fits.try_emplace({position, v}, false);
        if (is_new) {
          it->second =
              values_.FitsAll(values_.ItemGoals(way, position), values[v]);
        }
        if (!it->second) continue;
        choice.parts.push_back(Sequence(
            {Item(written == 0, Constant(values[v])),
             by_state.To({written + 1,
                          any_order ? taken | uint64_t{1} << v : v + 1})}));
      }
      syntax_.rules.push_back(
          {by_state.Name({written, taken}), std::move(choice)});
    }
    return InBrackets(std::move(start));
  }

  // A list of which some items are to be of some kind: every item is taken for
  // one of a kind, or not, and both are counted.
  std::optional<Term> ContainingItems(const Alternative& way,
                                      const SchemaValues::Shape& shape,
                                      int64_t least, int64_t most) {
    const std::vector<Alternative::Contains>& kinds = way.contains;
    using State = std::vector<int64_t>;  // items, and of each kind
    const int64_t last =
        std::max({static_cast<int64_t>(shape.known), least,
                  most == Term::kUnlimited ? int64_t{1} : most});
    double states = static_cast<double>(last) + 1;
    for (const auto& kind : kinds) {
      states *= static_cast<double>(std::max(kind.least, kind.most) + 1);
    }
    if (states > kMaxStates || kinds.size() > 3) {
      goals_.Drop(way.place, "contains with so large numbers is not supported");
      return std::nullopt;
    }
    StateRules<State> by_state(&parts_);
    Term start = by_state.To(State(kinds.size() + 1, 0));
    while (!by_state.done()) {
      const State at = by_state.Next();
      Term choice = Choice({});
      bool may_end = at[0] >= least;
      for (size_t k = 0; k < kinds.size(); ++k) {
        if (at[k + 1] < kinds[k].least) may_end = false;
      }
      if (may_end) choice.parts.push_back(at[0] > 0 ? Space() : Sequence({}));
      const bool may_go_on = most == Term::kUnlimited || at[0] < most;
      // Bit k: the item counts for kind k.
      for (size_t is = 0; may_go_on && is < size_t{1} << kinds.size(); ++is) {
        State next = at;
        next[0] = std::min(at[0] + 1, last);
        Goals goals = values_.ItemGoals(
            way, std::min(static_cast<size_t>(at[0]), shape.known));
        bool allowed = true;
        for (size_t k = 0; k < kinds.size(); ++k) {
          const bool counts = (is >> k & 1) != 0;
          if (counts) {
            goals = SchemaGoals::With(std::move(goals), kinds[k].goal);
            if (kinds[k].most >= 0 && at[k + 1] == kinds[k].most) {
              allowed = false;
            }
            next[k + 1] = std::min(at[k + 1] + 1,
                                   std::max(kinds[k].least, kinds[k].most));
          } else if (kinds[k].most >= 0) {
            goals = SchemaGoals::With(std::move(goals),
                                      goals_.Contrary(kinds[k].goal));
          }
        }
        if (!allowed) continue;
        choice.parts.push_back(Sequence(
            {Item(at[0] == 0, Reference(RuleFor(goals))), by_state.To(next)}));
      }
      syntax_.rules.push_back({by_state.Name(at), std::move(choice)});
    }
    return InBrackets(std::move(start));
  }

  // ---- objects

  static Term Member(Term key, Term value) {
    return Sequence(
        {std::move(key), Space(), Literal(":"), Space(), std::move(value)});
  }

  // What stands between members, and behind the last.
  struct Row {
    Term between, end;
  };

  Term Object(const Alternative& way) {
    return Sequence(
        {Literal("{"), Space(), AllMembers(way, nullptr), Literal("}")});
  }

  // As JSON has them, or in a form of their own.
  Term AllMembers(const Alternative& way, const MemberForm* form) {
    SchemaValues::Names names = values_.NamesOf(way);
    if (!names.impossible.empty()) {
      return Nothing(way.place, absl::StrCat("'", names.impossible,
                                             "' is required and not allowed"));
    }
    std::vector<Term> members;
    std::vector<bool> needed;
    const Row row = form == nullptr ? Row{Comma(), Space()}
                                    : Row{form->between, Sequence({})};
    for (const std::string& name : names.declared) {
      const bool must = std::find(way.required.begin(), way.required.end(),
                                  name) != way.required.end();
      const Goals goals = values_.ValueGoals(way, name);
      if (form == nullptr) {
        members.push_back(
            Member(Literal(Text(name)), Reference(RuleFor(goals))));
      } else if (form->listed_names.Has(name)) {
        members.push_back(FormMember(&name, Sequence({}), goals));
      } else {
        // Nobody could read it.
        if (must) NoSuchName(way.place, name);
        continue;
      }
      needed.push_back(must);
    }
    Term more = Choice({});
    for (SchemaValues::FreeNames& free : names.free) {
      if (form != nullptr) {
        auto written = free.all ? form->other_names
                                : free.names.And(form->other_names, &budget_);
        if (!written.ok()) {
          goals_.Fail(way.place, "the set of other names is too large");
        } else if (!written->empty()) {
          more.parts.push_back(
              FormMember(nullptr, written->Texts(), free.goals));
        }
        continue;
      }
      Term key =
          free.all ? Reference(kStringRule) : Quoted(free.names.JsonTexts());
      more.parts.push_back(
          Member(std::move(key), Reference(RuleFor(free.goals))));
    }
    const bool has_more = !more.parts.empty();
    const auto declared = static_cast<int64_t>(members.size());
    const int64_t least = Least(way.min_properties, "minProperties", way.place);
    int64_t most = way.max_properties;
    if (!has_more && most >= declared) most = -1;
    const bool counts =
        least > std::count(needed.begin(), needed.end(), true) || most >= 0;
    const bool any_order =
        open_ && (has_more || declared > 1) && members.size() <= kAnyOrder;
    Term inside = Choice({});
    if (counts || any_order || (open_ && has_more && declared > 0)) {
      inside = CountedMembers(way, std::move(members), needed, std::move(more),
                              least, most, any_order, row);
    } else {
      inside =
          Members(std::move(members), needed, std::move(more), has_more, row);
    }
    return inside;
  }

  // Members in order, those that are not needed perhaps left out, then more;
  // with commas between. Rules are shared, so that the size is linear: `after`
  // is what may follow something, `first` what may begin.
  Term Members(std::vector<Term> members, const std::vector<bool>& needed,
               Term more, bool has_more, const Row& row) {
    Term after = row.end, first = Sequence({});
    if (has_more) {
      const std::string member = NewRule(std::move(more));
      after = Sequence(
          {Repeat(Sequence({row.between, Reference(member)}), 0), row.end});
      first = Optional(Sequence({Reference(member), after}));
    }
    for (size_t i = members.size(); i-- > 0;) {
      const std::string member = NewRule(std::move(members[i]));
      const std::string tail = NewRule(std::move(after));
      Term begin = Sequence({Reference(member), Reference(tail)});
      Term next = Sequence({row.between, Reference(member), Reference(tail)});
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

  // Where members are counted, or come in any order. Of names that are not
  // known, one counts for the least number: a name that is there twice is one.
  Term CountedMembers(const Alternative& way, std::vector<Term> members,
                      const std::vector<bool>& needed, Term more, int64_t least,
                      int64_t most, bool any_order, const Row& row) {
    struct State {
      uint64_t at;      // which are written (any order), or may follow
      int64_t written;  // up to `most`, or 1
      int64_t known;    // different ones, up to `least`
      bool free;        // one is of a name that is not known
      bool operator<(const State& o) const {
        return std::tie(at, written, known, free) <
               std::tie(o.at, o.written, o.known, o.free);
      }
    };
    const bool has_more = !more.parts.empty();
    const size_t count = members.size();
    const auto declared = static_cast<int64_t>(count);
    const bool repeats = least > declared + (has_more ? 1 : 0);
    if (repeats && has_more) {
      goals_.Drop(way.place,
                  "minProperties of names that are not listed counts names "
                  "that are there twice");
    } else if (repeats) {
      return Nothing(way.place,
                     "minProperties asks for more than there can be");
    }
    const double states =
        static_cast<double>(any_order ? uint64_t{1} << count : count + 1) *
        static_cast<double>(std::max<int64_t>(most, 1) + 1) *
        static_cast<double>(least + 1);
    if (states > kMaxStates) {
      goals_.Drop(way.place,
                  "minProperties and maxProperties beside so many properties "
                  "are not supported");
      return Members(std::move(members), needed, std::move(more), has_more,
                     row);
    }
    std::vector<std::string> rules;
    for (Term& member : members) rules.push_back(NewRule(std::move(member)));
    const std::string more_rule = has_more ? NewRule(std::move(more)) : "";
    StateRules<State> by_state(&parts_);
    const int64_t most_written = most >= 0 ? std::max<int64_t>(most, 1) : 1;
    Term start = by_state.To({0, 0, 0, false});
    while (!by_state.done()) {
      const State at = by_state.Next();
      Term choice = Choice({});
      const auto take = [&](const std::string& member, uint64_t next,
                            bool free) {
        if (most >= 0 && at.written >= most) return;
        const bool counted = !free || !at.free || repeats;
        const State after = {next, std::min(at.written + 1, most_written),
                             std::min(at.known + (counted ? 1 : 0), least),
                             at.free || free};
        choice.parts.push_back(
            Sequence({Item(at.written == 0, Reference(member), row.between),
                      by_state.To(after)}));
      };
      bool may_end = at.known >= least;
      if (any_order) {
        for (size_t i = 0; i < count; ++i) {
          if ((at.at >> i & 1) != 0) continue;
          if (needed[i]) may_end = false;
          take(rules[i], at.at | uint64_t{1} << i, false);
        }
        if (has_more) take(more_rule, at.at, true);
      } else if (at.at < count) {
        may_end = false;
        take(rules[at.at], at.at + 1, false);
        if (open_ && has_more) take(more_rule, at.at, true);
        if (!needed[at.at]) {
          choice.parts.push_back(
              by_state.To({at.at + 1, at.written, at.known, at.free}));
        }
      } else if (has_more) {
        take(more_rule, at.at, true);
      }
      if (may_end) {
        choice.parts.push_back(at.written > 0 ? row.end : Sequence({}));
      }
      syntax_.rules.push_back({by_state.Name(at), std::move(choice)});
    }
    return start;
  }

  // ---- members that are no JSON

  void NoSuchName(const std::string& place, const std::string& name) {
    goals_.Drop(place, absl::StrCat("'", name,
                                    "' is required, and cannot be a name as "
                                    "this model writes its calls"));
  }

  Term RootMembers() {
    ways_ = goals_.Expand({goals_.Root()});
    Term choice = Choice({});
    for (Alternative& way : ways_) {
      way.types &= kObjectType;
      if (way.types == 0 || !goals_.status().ok()) continue;
      if (!way.values) {
        choice.parts.push_back(AllMembers(way, form_));
        CheckExcluded(way);
        continue;
      }
      for (const Json& value : *way.values) {
        if (values_.Fits(way, value)) {
          choice.parts.push_back(KnownMembers(value));
        }
      }
    }
    if (choice.parts.empty()) return Nothing("#", "allows no object");
    return choice;
  }

  // Of an object that is listed as a whole.
  Term KnownMembers(const Json& object) {
    std::vector<Term> parts;
    for (const auto& entry : object.items()) {
      const std::string& name = entry.key();
      const Json& value = entry.value();
      if (!form_->listed_names.Has(name)) {
        return Nothing("#", "its names cannot be written in a call");
      }
      const uint8_t types = values_.MemberTypes(ways_, name);
      StringLanguage texts;
      if (value.is_string()) texts = StringLanguage::OneOf({value});
      if (!parts.empty()) parts.push_back(form_->between);
      parts.push_back(FormMember(&name, Sequence({}), std::move(texts), types,
                                 TypeOf(value), "#",
                                 [&](uint8_t) { return Constant(value); }));
    }
    return Sequence(std::move(parts));
  }

  Term FormMember(const std::string* name, const Term& names,
                  const Goals& goals) {
    const std::string place = goals.empty() ? "#" : goals_.place(goals[0]);
    const uint8_t own = values_.TypesOf(goals);
    // Who reads it does not know which way was gone.
    uint8_t types = own;
    if (name != nullptr) {
      types = values_.MemberTypes(ways_, *name);
    } else if (ways_.size() > 1) {
      types = kAllTypes;
    }
    StringLanguage texts;
    if (form_->closing && (own & kStringType) != 0) {
      texts = values_.TextsOf(goals, place, "its text");
    }
    return FormMember(
        name, names, std::move(texts), types, own, place,
        [&](uint8_t others) { return Reference(RuleFor(goals, others)); });
  }

  // Those of `texts` that can stand between the form's markers and are read as
  // strings where a value of any of `types` may stand; nothing if none can.
  std::optional<Term> Unquoted(StringLanguage texts, uint8_t types,
                               const std::string& place) {
    static const auto* const kNone = new StringLanguage();
    const StringLanguage& taken =
        form_->tells_texts ? *kNone : TakenForOthers(types);
    const bool any = texts.all();
    if (any && any_text_.count(&taken) > 0) {
      return Reference(any_text_.at(&taken));
    }
    // The longer texts are counted, the less of what closes them may stand in
    // them: states are as many as both together.
    const std::string& closing = *form_->closing;
    size_t part = std::max(kLeastClosing,
                           kMaxTextStates / std::max<size_t>(texts.size(), 1));
    // Whole characters.
    while (part < closing.size() && (closing[part] & 0xC0) == 0x80) ++part;
    const StringLanguage open = StringLanguage::Before(closing.substr(0, part));
    const auto restrict = [&](absl::StatusOr<StringLanguage> made) {
      if (made.ok()) {
        texts = *std::move(made);
        return;
      }
      goals_.Drop(place, absl::StrCat("its text between markers ",
                                      made.status().message()));
      texts = StringLanguage::Before(closing);
    };
    if (!texts.empty()) restrict(texts.And(open, &text_budget_));
    if (!texts.empty() && !taken.empty()) {
      restrict(texts.ButNot(taken, &text_budget_));
    }
    if (texts.empty()) return std::nullopt;
    if (!any) return texts.Texts();
    // One rule for all that may be any text.
    const std::string rule = NewRule(texts.Texts());
    any_text_[&taken] = rule;
    return Reference(rule);
  }

  // `texts`: the strings among its values. `types`: of which the reader takes
  // it to be, `own`: of which it is; `json` makes values of such types.
  template <typename OfTypes>
  Term FormMember(const std::string* name, const Term& names,
                  StringLanguage texts, uint8_t types, uint8_t own,
                  const std::string& place, OfTypes json) {
    Term choice = Choice({});
    uint8_t others = kAllTypes;
    if (form_->closing) {
      // A string in quotes is one with quotes, unless it may be something else
      // that is JSON.
      const uint8_t plain =
          form_->tells_texts ? kAllTypes : kStringType | kNullType;
      if ((types & ~plain) == 0) others &= static_cast<uint8_t>(~kStringType);
      if (auto text = Unquoted(std::move(texts), types, place)) {
        choice.parts.push_back(
            form_->member(name, names, *std::move(text), true));
      }
    }
    if ((own & others) != 0) {
      choice.parts.push_back(form_->member(name, names, json(others), false));
    }
    if (choice.parts.empty()) {
      return Nothing(place, "no text of it can be written in a call");
    }
    return choice;
  }

  const bool open_;
  const MemberForm* const form_;   // of the root; null: it is JSON
  std::vector<Alternative> ways_;  // of the root, if it has a form
  // Rules of any text, by what is taken for something else.
  std::map<const StringLanguage*, std::string> any_text_;
  Budget budget_;
  Budget text_budget_ = {30000000};  // of texts between markers
  SchemaGoals goals_;
  SchemaValues values_;
  Syntax syntax_;
  using Wanted = std::pair<Goals, uint8_t>;  // and of which types
  std::map<Wanted, std::string> rules_;
  std::vector<std::pair<Wanted, std::string>> waiting_;
  int parts_ = 0;
  std::string nothing_;
};

}  // namespace

absl::StatusOr<Syntax> FromJsonSchema(const nlohmann::ordered_json& schema,
                                      const SchemaOptions& options) {
  return Converter(schema, options).Run();
}

Syntax AnyJsonObject() {
  Syntax syntax;
  syntax.rules = CommonRules();
  syntax.rules.push_back({"root", Reference(kObjectRule)});
  return syntax;
}

}  // namespace weft::grammar
