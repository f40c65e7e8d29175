// A grammar as it is written: rules of literals, classes, references, choices
// and repetitions. GBNF (gbnf.h) and JSON Schema (json_schema.h) become this;
// compiled.h makes of it what can be matched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft::grammar {

// Code points from `first` to `last`, both included.
struct CodePoints {
  uint32_t first, last;
};

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

// A state of an automaton over characters; the first of a list is where texts
// begin.
struct CharacterState {
  struct Edge {
    std::vector<CodePoints> on;
    int32_t to;
  };
  std::vector<Edge> edges;
  std::vector<int32_t> empty;  // states that are reached for nothing
  bool accepts = false;
};

struct Term {
  enum Kind {
    kLiteral,    // bytes
    kClass,      // one character out of `ranges`, or not out of them
    kReference,  // to the rule `name`
    kSequence,   // parts one after the other; none: the empty text
    kChoice,     // one of parts
    kRepeat,     // parts[0], `least` to `most` times
    kStates,     // what the automaton `states` accepts: at least one text
  };
  static constexpr int64_t kUnlimited = -1;

  Kind kind = kSequence;
  int line = 0;  // in the source, 0 where there is none
  std::string bytes;
  std::vector<CodePoints> ranges;
  bool negated = false;
  std::string name;
  std::vector<Term> parts;
  int64_t least = 0, most = kUnlimited;
  std::shared_ptr<const std::vector<CharacterState>> states;
};

struct Rule {
  std::string name;
  Term term;
};

// The rule "root" is where a text begins.
struct Syntax {
  std::vector<Rule> rules;
  // What was asked for and is not kept by the rules: "<place>: <why>".
  std::vector<std::string> dropped;
};

inline Term Literal(std::string bytes) {
  Term term;
  term.kind = Term::kLiteral;
  term.bytes = std::move(bytes);
  return term;
}
inline Term Class(std::vector<CodePoints> ranges, bool negated = false) {
  Term term;
  term.kind = Term::kClass;
  term.ranges = std::move(ranges);
  term.negated = negated;
  return term;
}
inline Term Reference(std::string name) {
  Term term;
  term.kind = Term::kReference;
  term.name = std::move(name);
  return term;
}
inline Term Sequence(std::vector<Term> parts) {
  Term term;
  term.parts = std::move(parts);
  return term;
}
inline Term Choice(std::vector<Term> parts) {
  Term term;
  term.kind = Term::kChoice;
  term.parts = std::move(parts);
  return term;
}
inline Term Repeat(Term part, int64_t least, int64_t most = Term::kUnlimited) {
  Term term;
  term.kind = Term::kRepeat;
  term.parts.push_back(std::move(part));
  term.least = least;
  term.most = most;
  return term;
}
inline Term States(std::vector<CharacterState> states) {
  Term term;
  term.kind = Term::kStates;
  term.states = std::make_shared<const std::vector<CharacterState>>(
      std::move(states));
  return term;
}
inline Term Optional(Term part) { return Repeat(std::move(part), 0, 1); }

}  // namespace weft::grammar
