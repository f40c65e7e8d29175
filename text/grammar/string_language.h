// Sets of strings that a finite automaton tells: what patterns, formats,
// lengths and names say of a text, so that several of them together, or the
// contrary of one, are again a set of that kind.
//
// Idea: a StringLanguage is a deterministic automaton over code points in which
// every state is of use; and, or and but-not are products of two. What is
// written more easily with choices (a pattern, a term) is an Nfa first; the
// usual subsets of its states make it deterministic.
//
// Both may grow exponentially: all functions take a budget of work, in parts
// of about 10 ns, and give an error of kResourceExhausted when it is used up.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

// What is left to be done.
struct Budget {
  int64_t work = 6000000;
  bool Spend(int64_t units) { return (work -= units) >= 0; }
};
absl::Status OverBudget();

// An automaton with choices, built from its end to its beginning.
class Nfa {
 public:
  // When an empty step may be taken.
  enum Condition : uint8_t {
    kAlways,
    kAtBegin,
    kAtEnd,
    kAtWordBorder,
    kNotAtWordBorder,
  };
  struct State {
    std::vector<CharacterState::Edge> edges;  // normalized ranges
    std::vector<std::pair<int32_t, Condition>> empty;
    bool accepts = false;
  };

  static constexpr size_t kMaxStates = 200000;

  int32_t NewState();
  // Each returns a state from which one comes to `next`.
  int32_t Characters(std::vector<CodePoints> normalized, int32_t next);
  int32_t If(Condition condition, int32_t next);
  int32_t Either(const std::vector<int32_t>& states);
  // Of a term without references.
  int32_t OfTerm(const Term& term, int32_t next);
  int32_t Copy(const class StringLanguage& language);

  State& at(int32_t state) { return states_[state]; }
  const State& at(int32_t state) const { return states_[state]; }
  size_t size() const { return states_.size(); }
  // Too many states were wanted; what was built is of no use.
  bool full() const { return states_.size() >= kMaxStates; }
  // Whether a step depends on what is before it.
  bool looks_back() const { return looks_back_; }
  bool has_conditions() const { return has_conditions_; }
  bool has_borders() const { return has_borders_; }

 private:
  std::vector<State> states_;
  bool looks_back_ = false, has_conditions_ = false, has_borders_ = false;
};

class StringLanguage {
 public:
  struct State {
    std::vector<std::pair<CodePoints, int32_t>> edges;  // in order
    bool accepts = false;
  };

  StringLanguage() = default;  // of no string
  static StringLanguage All();
  static StringLanguage OneOf(const std::vector<std::string>& texts);
  // Behind which `marker` comes for the first time.
  static StringLanguage Before(const std::string& marker);
  // In which `marker`, which is not empty, does not come.
  static StringLanguage Without(const std::string& marker);
  // From `least` to `most` characters, or more.
  static StringLanguage Lengths(int64_t least, int64_t most);
  static absl::StatusOr<StringLanguage> Of(const Nfa& nfa, int32_t start,
                                           Budget* budget);
  // Of a term without references.
  static absl::StatusOr<StringLanguage> Of(const Term& term, Budget* budget);

  absl::StatusOr<StringLanguage> And(const StringLanguage& other,
                                     Budget* budget) const;
  absl::StatusOr<StringLanguage> Or(const StringLanguage& other,
                                    Budget* budget) const;
  absl::StatusOr<StringLanguage> ButNot(const StringLanguage& other,
                                        Budget* budget) const;

  bool empty() const { return states_.empty(); }
  // Whether it is plain that every string is in it.
  bool all() const;
  bool Has(const std::string& text) const;
  size_t size() const { return states_.size(); }
  const std::vector<State>& states() const { return states_; }

  // As they are; not empty.
  Term Texts() const;
  // As the inside of a JSON string: escapes only where they must be, of two
  // characters where there are such; not empty.
  Term JsonTexts() const;

 private:
  template <typename Keep, typename Accept>
  absl::StatusOr<StringLanguage> Product(const StringLanguage& other,
                                         Budget* budget, Keep keep,
                                         Accept accept) const;
  // Leaves out states from which no text ends.
  void Trim();

  std::vector<State> states_;  // the first is the start
};

// The states of a JSON string's inside for those of its characters.
std::vector<CharacterState> JsonEscaped(std::vector<CharacterState> states);

}  // namespace weft::grammar
