#include "text/grammar/rule_properties.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/utf8_ranges.h"

namespace weft::grammar {
namespace {

constexpr size_t kMaxRules = 10000;
// Terms and ranges that are looked at: a long rule is looked at as often as
// there are rules that it waits for.
constexpr int64_t kMaxWork = 20000000;

absl::Status Refused(absl::string_view rule, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("grammar: rule '", rule, "': ", why));
}

bool MatchesEmpty(const std::vector<CharacterState>& states) {
  std::vector<bool> seen(states.size(), false);
  std::vector<int32_t> work = {0};
  while (!work.empty()) {
    const int32_t at = work.back();
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    if (states[at].accepts) return true;
    work.insert(work.end(), states[at].empty.begin(), states[at].empty.end());
  }
  return false;
}

class Checker {
 public:
  Checker(const Syntax& syntax, int64_t work)
      : syntax_(syntax), work_left_(work) {}

  absl::Status Run() {
    if (syntax_.rules.size() > kMaxRules) {
      return absl::InvalidArgumentError(
          absl::StrCat("grammar: it has ", syntax_.rules.size(),
                       " rules: at most ", kMaxRules, " are allowed"));
    }
    for (size_t i = 0; i < syntax_.rules.size(); ++i) {
      if (!index_.try_emplace(syntax_.rules[i].name, i).second) {
        return Refused(syntax_.rules[i].name, "is there twice");
      }
    }
    if (!index_.contains("root")) {
      return Refused("root", "is missing: it is where a text begins");
    }
    users_.resize(syntax_.rules.size());
    for (size_t i = 0; i < syntax_.rules.size(); ++i) {
      const std::string missing = NoteUses(syntax_.rules[i].term, i);
      if (!missing.empty()) {
        return Refused(missing,
                       absl::StrCat("is missing: rule '", syntax_.rules[i].name,
                                    "' refers to it"));
      }
    }
    const std::vector<bool> can_end = Solve(/*empty_only=*/false);
    if (work_left_ < 0) return TooMuchWork();
    for (size_t i = 0; i < can_end.size(); ++i) {
      if (!can_end[i]) {
        return Refused(syntax_.rules[i].name,
                       "can never end: give it a choice without itself");
      }
    }
    empty_ = Solve(/*empty_only=*/true);
    if (work_left_ < 0) return TooMuchWork();
    return CheckLeftRecursion();
  }

  // LeaveOutImpossible of the same syntax.
  bool LeaveOut(Syntax* syntax) {
    std::vector<Rule>& rules = syntax->rules;
    for (size_t i = 0; i < rules.size(); ++i) index_[rules[i].name] = i;
    users_.resize(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) NoteUses(rules[i].term, i);
    const std::vector<bool> known = Solve(/*empty_only=*/false);
    if (!known[index_.at("root")]) return false;
    std::vector<Rule> kept;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (!known[i]) continue;
      LeaveOut(known, &rules[i].term);
      kept.push_back(std::move(rules[i]));
    }
    rules = std::move(kept);
    return true;
  }

 private:
  static absl::Status TooMuchWork() {
    return absl::InvalidArgumentError(
        "grammar: its rules refer to each other too often: use fewer or "
        "shorter ones");
  }

  // The name of a rule that is not there, or empty.
  std::string NoteUses(const Term& term, size_t user) {
    if (term.kind == Term::kReference) {
      const auto found = index_.find(term.name);
      if (found == index_.end()) return term.name;
      std::vector<size_t>& users = users_[found->second];
      if (users.empty() || users.back() != user) users.push_back(user);
    }
    for (const Term& part : term.parts) {
      std::string missing = NoteUses(part, user);
      if (!missing.empty()) return missing;
    }
    return "";
  }

  // Whether `term` can match a text, or the empty one, by rules known to.
  bool Holds(const Term& term, const std::vector<bool>& known,
             bool empty_only) {
    work_left_ -= 1 + static_cast<int64_t>(term.ranges.size());
    if (work_left_ < 0) return false;
    const auto holds = [&](const Term& part) {
      return Holds(part, known, empty_only);
    };
    switch (term.kind) {
      case Term::kLiteral:
        return !empty_only || term.bytes.empty();
      case Term::kClass:
        return !empty_only && !Normalized(term.ranges, term.negated).empty();
      case Term::kReference:
        return known[index_.at(term.name)];
      case Term::kSequence:
        return std::all_of(term.parts.begin(), term.parts.end(), holds);
      case Term::kChoice:
        return std::any_of(term.parts.begin(), term.parts.end(), holds);
      case Term::kRepeat:
        return term.least == 0 || holds(term.parts[0]);
      case Term::kStates:
        work_left_ -= static_cast<int64_t>(term.states->size());
        return !empty_only || MatchesEmpty(*term.states);
    }
    return false;
  }

  // Of a term that has a text, what has none.
  void LeaveOut(const std::vector<bool>& known, Term* term) {
    const auto impossible = [&](const Term& part) {
      return !Holds(part, known, /*empty_only=*/false);
    };
    if (term->kind == Term::kChoice) {
      term->parts.erase(
          std::remove_if(term->parts.begin(), term->parts.end(), impossible),
          term->parts.end());
    } else if (term->kind == Term::kRepeat && impossible(term->parts[0])) {
      *term = Sequence({});
    }
    for (Term& part : term->parts) LeaveOut(known, &part);
  }

  // The least solution: a rule is looked at again when one that it uses is
  // found to hold.
  std::vector<bool> Solve(bool empty_only) {
    std::vector<bool> known(syntax_.rules.size(), false);
    std::vector<size_t> work;
    for (size_t i = 0; i < known.size(); ++i) work.push_back(i);
    while (!work.empty()) {
      const size_t rule = work.back();
      work.pop_back();
      if (known[rule] || !Holds(syntax_.rules[rule].term, known, empty_only)) {
        continue;
      }
      known[rule] = true;
      work.insert(work.end(), users_[rule].begin(), users_[rule].end());
    }
    return known;
  }

  // Adds the rules that `term` may call first. Returns whether it may be empty,
  // so that what follows comes first, too.
  bool CallsFirst(const Term& term, std::vector<size_t>& calls) {
    switch (term.kind) {
      case Term::kReference: {
        const size_t rule = index_.at(term.name);
        calls.push_back(rule);
        return empty_[rule];
      }
      case Term::kSequence:
        for (const Term& part : term.parts) {
          if (!CallsFirst(part, calls)) return false;
        }
        return true;
      case Term::kChoice: {
        bool empty = false;
        for (const Term& part : term.parts) {
          if (CallsFirst(part, calls)) empty = true;
        }
        return empty;
      }
      case Term::kRepeat:
        if (term.most == 0) return true;
        return CallsFirst(term.parts[0], calls) || term.least == 0;
      case Term::kStates:
        return MatchesEmpty(*term.states);
      default:
        return term.kind == Term::kLiteral && term.bytes.empty();
    }
  }

  // A cycle among first calls; by a walk that keeps its own stack.
  absl::Status CheckLeftRecursion() {
    const size_t count = syntax_.rules.size();
    std::vector<std::vector<size_t>> calls(count);
    for (size_t i = 0; i < count; ++i) {
      CallsFirst(syntax_.rules[i].term, calls[i]);
    }
    enum Colour : uint8_t { kNew, kOpen, kDone };
    std::vector<Colour> colours(count, kNew);
    for (size_t first = 0; first < count; ++first) {
      if (colours[first] != kNew) continue;
      std::vector<std::pair<size_t, size_t>> path = {{first, 0}};
      colours[first] = kOpen;
      while (!path.empty()) {
        auto& [rule, next] = path.back();
        if (next == calls[rule].size()) {
          colours[rule] = kDone;
          path.pop_back();
          continue;
        }
        const size_t callee = calls[rule][next++];
        if (colours[callee] == kOpen) {
          return Refused(syntax_.rules[callee].name,
                         "calls itself before it has consumed anything (left "
                         "recursion): write it with a repetition");
        }
        if (colours[callee] == kNew) {
          colours[callee] = kOpen;
          path.emplace_back(callee, 0);
        }
      }
    }
    return absl::OkStatus();
  }

  const Syntax& syntax_;
  int64_t work_left_;
  absl::flat_hash_map<std::string, size_t> index_;
  std::vector<std::vector<size_t>> users_;  // by rule: who refers to it
  std::vector<bool> empty_;                 // rules that match the empty text
};

}  // namespace

absl::Status CheckRules(const Syntax& syntax) {
  return Checker(syntax, kMaxWork).Run();
}

bool LeaveOutImpossible(Syntax* syntax) {
  return Checker(*syntax, std::numeric_limits<int64_t>::max()).LeaveOut(syntax);
}

}  // namespace weft::grammar
