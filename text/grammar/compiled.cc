#include "text/grammar/compiled.h"

#include <algorithm>
#include <deque>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/rule_properties.h"
#include "text/grammar/utf8_ranges.h"

namespace weft::grammar {
namespace {

// About 25 bytes each, and some 150 while they are made.
constexpr size_t kMaxStates = 500000;
// Terms that are built, each as often as it is repeated, and edges of classes.
constexpr int64_t kMaxWork = 3000000;
constexpr int kMaxDepth = 1000;
// Rules up to this size are put in where they are used (see Inlined).
constexpr int64_t kSmallBytes = 24, kSmallTerms = 64;
constexpr int64_t kLarge = 1000000;
constexpr int kMaxTail = 100;  // states

}  // namespace

class Compiler {
 public:
  explicit Compiler(const Syntax& syntax) : syntax_(syntax) {}

  absl::StatusOr<Compiled> Run() {
    absl::Status status = CheckRules(syntax_);
    if (!status.ok()) return status;
    for (const Rule& rule : syntax_.rules) {
      starts_[rule.name] = NewState();
      terms_[rule.name] = &rule.term;
    }
    for (const Rule& rule : syntax_.rules) {
      const int32_t end = NewState();
      states_[end].ends_rule = true;
      Build(rule.term, starts_[rule.name], end, 0);
      if (!status_.ok()) return status_;
    }
    ShortenTails();
    return Flat();
  }

 private:
  struct Draft {
    std::vector<Compiled::ByteEdge> bytes;
    std::vector<int32_t> empty;
    std::vector<Compiled::Call> calls;
    bool ends_rule = false;
  };

  Compiled Flat() {
    Compiled made;
    made.start_ = starts_["root"];
    size_t bytes = 0, empty = 0, calls = 0;
    for (const Draft& state : states_) {
      bytes += state.bytes.size();
      empty += state.empty.size();
      calls += state.calls.size();
    }
    made.states_.reserve(states_.size() + 1);
    made.bytes_.reserve(bytes);
    made.empty_.reserve(empty);
    made.calls_.reserve(calls);
    const auto begin = [&](bool ends_rule) {
      made.states_.push_back({static_cast<int32_t>(made.bytes_.size()),
                              static_cast<int32_t>(made.empty_.size()),
                              static_cast<int32_t>(made.calls_.size()),
                              ends_rule});
    };
    for (const Draft& state : states_) {
      begin(state.ends_rule);
      made.bytes_.insert(made.bytes_.end(), state.bytes.begin(),
                         state.bytes.end());
      made.empty_.insert(made.empty_.end(), state.empty.begin(),
                         state.empty.end());
      made.calls_.insert(made.calls_.end(), state.calls.begin(),
                         state.calls.end());
    }
    begin(false);
    return made;
  }

  int32_t NewState() {
    if (states_.size() >= kMaxStates) TooLarge();
    if (!status_.ok()) return 0;
    states_.emplace_back();
    return static_cast<int32_t>(states_.size()) - 1;
  }

  void TooLarge() {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        "grammar: it is too large: use fewer or smaller repetitions");
  }

  void Spend(size_t work) {
    work_left_ -= static_cast<int64_t>(work);
    if (work_left_ < 0) TooLarge();
  }

  void Empty(int32_t from, int32_t to) { states_[from].empty.push_back(to); }

  // Adds the ways through `term` from `from` to `to`.
  void Build(const Term& term, int32_t from, int32_t to, int depth) {
    if (depth > kMaxDepth && status_.ok()) {
      status_ = absl::InvalidArgumentError("grammar: nested too deeply");
    }
    Spend(1 + term.ranges.size());
    if (!status_.ok()) return;
    switch (term.kind) {
      case Term::kLiteral: {
        for (const char c : term.bytes) {
          const int32_t next = NewState();
          if (!status_.ok()) return;
          const uint8_t byte = static_cast<uint8_t>(c);
          states_[from].bytes.push_back({byte, byte, next});
          from = next;
        }
        Empty(from, to);
        break;
      }
      case Term::kClass:
        BuildClass(term, from, to);
        break;
      case Term::kReference:
        if (const Term* small = Inlined(term.name)) {
          Build(*small, from, to, depth + 1);
        } else {
          states_[from].calls.push_back({starts_[term.name], to});
        }
        break;
      case Term::kSequence:
        for (const Term& part : term.parts) {
          const int32_t next = NewState();
          Build(part, from, next, depth + 1);
          from = next;
        }
        if (status_.ok()) Empty(from, to);
        break;
      case Term::kChoice:
        for (const Term& part : term.parts) Build(part, from, to, depth + 1);
        break;
      case Term::kRepeat:
        BuildRepeat(term, from, to, depth);
        break;
      case Term::kStates:
        BuildStates(*term.states, from, to);
        break;
    }
  }

  void BuildStates(const std::vector<CharacterState>& states, int32_t from,
                   int32_t to) {
    std::vector<int32_t> made;
    for (size_t i = 0; i < states.size() && status_.ok(); ++i) {
      made.push_back(NewState());
    }
    if (!status_.ok()) return;
    Empty(from, made[0]);
    for (size_t i = 0; i < states.size(); ++i) {
      for (const CharacterState::Edge& edge : states[i].edges) {
        Spend(1 + edge.on.size());
        if (status_.ok()) BuildRanges(edge.on, made[i], made[edge.to]);
        if (!status_.ok()) return;
      }
      Spend(1 + states[i].empty.size());
      for (const int32_t next : states[i].empty) Empty(made[i], made[next]);
      if (states[i].accepts) Empty(made[i], to);
    }
  }

  void BuildRepeat(const Term& term, int32_t from, int32_t to, int depth) {
    const Term& part = term.parts[0];
    for (int64_t i = 0; i < term.least && status_.ok(); ++i) {
      const int32_t next = NewState();
      Build(part, from, next, depth + 1);
      from = next;
    }
    if (!status_.ok()) return;
    if (term.most == Term::kUnlimited) {
      // A state that only the loop enters, so that nothing else goes round.
      const int32_t loop = NewState();
      if (!status_.ok()) return;
      Empty(from, loop);
      Build(part, loop, loop, depth + 1);
      if (status_.ok()) Empty(loop, to);
      return;
    }
    Empty(from, to);
    for (int64_t i = term.least; i < term.most && status_.ok(); ++i) {
      const int32_t next = NewState();
      Build(part, from, next, depth + 1);
      if (status_.ok()) Empty(next, to);
      from = next;
    }
  }

  void BuildClass(const Term& term, int32_t from, int32_t to) {
    BuildRanges(Normalized(term.ranges, term.negated), from, to);
  }

  // `ranges` are normalized.
  void BuildRanges(const std::vector<CodePoints>& ranges, int32_t from,
                   int32_t to) {
    // States by what must still follow: most sequences end alike.
    std::map<std::string, int32_t> suffixes;
    const auto sequences = Utf8Sequences(ranges);
    Spend(sequences.size());
    if (!status_.ok()) return;
    for (const ByteRanges& sequence : sequences) {
      int32_t next = to;
      std::string key;
      for (size_t i = sequence.size() - 1; i > 0; --i) {
        key.push_back(static_cast<char>(sequence[i].first));
        key.push_back(static_cast<char>(sequence[i].last));
        const auto [it, is_new] = suffixes.try_emplace(key, 0);
        if (is_new) {
          it->second = NewState();
          if (!status_.ok()) return;
          states_[it->second].bytes.push_back(
              {sequence[i].first, sequence[i].last, next});
        }
        next = it->second;
      }
      states_[from].bytes.push_back(
          {sequence[0].first, sequence[0].last, next});
    }
  }

  // What a text of a term takes at most, and the terms that it is made of, with
  // the rules that it uses; kLarge or more where there is no bound.
  struct Size {
    int64_t bytes, terms;
  };

  Size SizeOf(const Term& term, int depth) {
    Size size{0, 1};
    if (depth > 50) return {kLarge, kLarge};
    switch (term.kind) {
      case Term::kLiteral:
        size.bytes = static_cast<int64_t>(term.bytes.size());
        break;
      case Term::kClass:
        size.bytes = 4;
        break;
      case Term::kReference:
        return SizeOfRule(term.name, depth);
      case Term::kStates:
        return {kLarge, kLarge};
      default:
        for (const Term& part : term.parts) {
          const Size of_part = SizeOf(part, depth + 1);
          size.terms += of_part.terms;
          size.bytes = term.kind == Term::kChoice
                           ? std::max(size.bytes, of_part.bytes)
                           : size.bytes + of_part.bytes;
        }
        if (term.kind == Term::kRepeat) {
          const bool bounded = term.most >= 0 && term.most <= kSmallBytes;
          const int64_t times = bounded ? term.most : kLarge;
          size.bytes *= times;
          size.terms *= std::max<int64_t>(times, 1);
        }
    }
    return {std::min(size.bytes, kLarge), std::min(size.terms, kLarge)};
  }

  // A rule that is being looked at has no bound: it uses itself.
  Size SizeOfRule(const std::string& name, int depth) {
    const auto [it, is_new] = sizes_.try_emplace(name, Size{kLarge, kLarge});
    if (!is_new) return it->second;
    const Size size = SizeOf(*terms_[name], depth + 1);
    sizes_[name] = size;
    return size;
  }

  // The term of a small rule, to be used in its place; else null. Masks are
  // made per state as far as its rule goes (grammar.h): were the characters of
  // a string calls, every token of a string would leave the rule.
  const Term* Inlined(const std::string& name) {
    const Size size = SizeOfRule(name, 0);
    const bool small = size.bytes <= kSmallBytes && size.terms <= kSmallTerms;
    return small ? terms_[name] : nullptr;
  }

  // Whether nothing is left to do in `state` but to return, as far as that is
  // seen in few steps.
  bool OnlyReturns(int32_t state) const {
    for (int steps = 0; steps < kMaxTail; ++steps) {
      const Draft& s = states_[state];
      if (!s.bytes.empty() || !s.calls.empty()) return false;
      if (s.ends_rule) return s.empty.empty();
      if (s.empty.size() != 1) return false;
      state = s.empty[0];
    }
    return false;
  }

  void ShortenTails() {
    for (Draft& state : states_) {
      for (Compiled::Call& call : state.calls) {
        if (OnlyReturns(call.then)) call.then = Compiled::kReturn;
      }
    }
  }

  const Syntax& syntax_;
  absl::flat_hash_map<std::string, int32_t> starts_;
  absl::flat_hash_map<std::string, const Term*> terms_;
  absl::flat_hash_map<std::string, Size> sizes_;
  std::vector<Draft> states_;
  int64_t work_left_ = kMaxWork;
  absl::Status status_;
};

int64_t Compiled::bytes() const {
  return static_cast<int64_t>(
      states_.size() * sizeof(Entry) + bytes_.size() * sizeof(ByteEdge) +
      empty_.size() * sizeof(int32_t) + calls_.size() * sizeof(Call));
}

absl::StatusOr<Compiled> Compiled::Create(const Syntax& syntax) {
  return Compiler(syntax).Run();
}

}  // namespace weft::grammar
