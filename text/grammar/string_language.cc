#include "text/grammar/string_language.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "text/grammar/utf8_ranges.h"
#include "text/jinja/text.h"

namespace weft::grammar {
namespace {

constexpr size_t kMaxStates = 100000;
constexpr int kDead = -1;

const std::vector<CodePoints>& AnyCharacter() {
  static const auto* const kAny =
      new std::vector<CodePoints>(Normalized({}, /*negated=*/true));
  return *kAny;
}

bool IsWord(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= 'a' && c <= 'z');
}

// What is beside a place in a text.
enum class Beside : uint8_t { kNothing, kWord, kOther };

bool Holds(Nfa::Condition condition, Beside before, Beside after) {
  switch (condition) {
    case Nfa::kAlways:
      return true;
    case Nfa::kAtBegin:
      return before == Beside::kNothing;
    case Nfa::kAtEnd:
      return after == Beside::kNothing;
    case Nfa::kAtWordBorder:
      return (before == Beside::kWord) != (after == Beside::kWord);
    case Nfa::kNotAtWordBorder:
      return (before == Beside::kWord) == (after == Beside::kWord);
  }
  return false;
}

// Subsets of states.
class Determiner {
 public:
  Determiner(const Nfa& nfa, Budget* budget)
      : nfa_(nfa), budget_(budget), seen_(nfa.size(), 0) {}

  absl::StatusOr<std::vector<StringLanguage::State>> Run(int32_t start) {
    // Beside::kNothing and kWord are told apart only where that matters.
    Number({start}, Beside::kNothing);
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto key = keys_[i];
      for (const int32_t s : Closure(key.first, key.second, Beside::kNothing)) {
        if (nfa_.at(s).accepts) states_[i].accepts = true;
      }
      if (nfa_.has_borders()) {
        AddEdges(i, key.first, key.second, Beside::kWord);
        AddEdges(i, key.first, key.second, Beside::kOther);
        auto& edges = states_[i].edges;
        std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) {
          return a.first.first < b.first.first;
        });
      } else {
        AddEdges(i, key.first, key.second, Beside::kOther);
      }
      if (budget_->work < 0 || states_.size() > kMaxStates) return OverBudget();
    }
    return std::move(states_);
  }

 private:
  int32_t Number(std::vector<int32_t> set, Beside before) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    const auto [it, is_new] = numbers_.try_emplace(
        std::make_pair(set, before), static_cast<int32_t>(keys_.size()));
    if (is_new) {
      keys_.emplace_back(std::move(set), before);
      states_.emplace_back();
    }
    return it->second;
  }

  std::vector<int32_t> Closure(const std::vector<int32_t>& set, Beside before,
                               Beside after) {
    ++round_;
    std::vector<int32_t> found = set;
    for (const int32_t s : set) seen_[s] = round_;
    for (size_t i = 0; i < found.size(); ++i) {
      const auto& empty = nfa_.at(found[i]).empty;
      budget_->Spend(2 + static_cast<int64_t>(empty.size()));
      for (const auto& [to, condition] : empty) {
        if (seen_[to] == round_ || !Holds(condition, before, after)) continue;
        seen_[to] = round_;
        found.push_back(to);
      }
    }
    return found;
  }

  void AddEdges(size_t state, const std::vector<int32_t>& set, Beside before,
                Beside after) {
    if (budget_->work < 0) return;
    // Where ranges begin (+) and end (-), in order.
    struct Cut {
      uint32_t at;
      bool begins;
      int32_t to;
    };
    std::vector<Cut> cuts;
    for (const int32_t s : Closure(set, before, after)) {
      for (const CharacterState::Edge& edge : nfa_.at(s).edges) {
        for (const CodePoints& range : edge.on) {
          cuts.push_back({range.first, true, edge.to});
          cuts.push_back({range.last + 1, false, edge.to});
        }
      }
    }
    budget_->Spend(static_cast<int64_t>(cuts.size()) * 2);
    std::sort(cuts.begin(), cuts.end(),
              [](const Cut& a, const Cut& b) { return a.at < b.at; });
    std::map<int32_t, int> open;  // how often each target is
    const auto add = [&](uint32_t first, uint32_t last) {
      std::vector<int32_t> next;
      for (const auto& [to, times] : open) next.push_back(to);
      if (next.empty() || !budget_->Spend(static_cast<int64_t>(next.size()))) {
        return;
      }
      const auto put = [&](uint32_t a, uint32_t b, Beside now) {
        const int32_t to = Number(next, now);
        auto& edges = states_[state].edges;
        if (!edges.empty() && edges.back().second == to &&
            edges.back().first.last + 1 == a) {
          edges.back().first.last = b;
        } else {
          edges.push_back({{a, b}, to});
        }
      };
      if (!nfa_.has_borders()) {
        // What is before matters at the beginning only.
        return put(first, last, Beside::kOther);
      }
      for (uint32_t a = first; a <= last;) {
        const bool word = IsWord(a);
        uint32_t b = a;
        while (b < last && b < 0x80 && IsWord(b + 1) == word) ++b;
        if (b >= 0x80 && !word) b = last;
        if (word == (after == Beside::kWord)) put(a, b, after);
        a = b + 1;
      }
    };
    for (size_t i = 0; i < cuts.size();) {
      const uint32_t at = cuts[i].at;
      for (; i < cuts.size() && cuts[i].at == at; ++i) {
        if (cuts[i].begins) {
          ++open[cuts[i].to];
        } else if (--open[cuts[i].to] == 0) {
          open.erase(cuts[i].to);
        }
      }
      if (i < cuts.size() && !open.empty()) add(at, cuts[i].at - 1);
    }
  }

  const Nfa& nfa_;
  Budget* const budget_;
  std::vector<int> seen_;
  int round_ = 0;
  absl::flat_hash_map<std::pair<std::vector<int32_t>, Beside>, int32_t>
      numbers_;
  std::vector<std::pair<std::vector<int32_t>, Beside>> keys_;
  std::vector<StringLanguage::State> states_;
};

}  // namespace

absl::Status OverBudget() {
  return absl::ResourceExhaustedError("is too large: simplify it");
}

int32_t Nfa::NewState() {
  if (full()) return 0;
  states_.emplace_back();
  return static_cast<int32_t>(states_.size()) - 1;
}

int32_t Nfa::Characters(std::vector<CodePoints> normalized, int32_t next) {
  const int32_t made = NewState();
  if (!full()) states_[made].edges.push_back({std::move(normalized), next});
  return made;
}

int32_t Nfa::If(Condition condition, int32_t next) {
  const int32_t made = NewState();
  states_[made].empty.emplace_back(next, condition);
  if (condition != kAlways) has_conditions_ = true;
  if (condition >= kAtWordBorder) has_borders_ = true;
  if (condition != kAlways && condition != kAtEnd) looks_back_ = true;
  return made;
}

int32_t Nfa::Either(const std::vector<int32_t>& states) {
  const int32_t made = NewState();
  for (const int32_t s : states) states_[made].empty.emplace_back(s, kAlways);
  return made;
}

int32_t Nfa::OfTerm(const Term& term, int32_t next) {
  if (full()) return 0;
  switch (term.kind) {
    case Term::kLiteral: {
      const jinja::Text text = jinja::FromUtf8(term.bytes);
      for (size_t i = text.size(); i-- > 0;) {
        next = Characters({{text[i], text[i]}}, next);
      }
      return next;
    }
    case Term::kClass:
      return Characters(Normalized(term.ranges, term.negated), next);
    case Term::kSequence:
      for (size_t i = term.parts.size(); i-- > 0;) {
        next = OfTerm(term.parts[i], next);
      }
      return next;
    case Term::kChoice: {
      std::vector<int32_t> states;
      for (const Term& part : term.parts) states.push_back(OfTerm(part, next));
      return Either(states);
    }
    case Term::kRepeat:
      if (term.most == Term::kUnlimited) {
        const int32_t loop = Either({next});
        const int32_t again = OfTerm(term.parts[0], loop);
        states_[loop].empty.emplace_back(again, kAlways);
        next = loop;
      } else {
        const int32_t end = next;
        for (int64_t i = term.least; i < term.most && !full(); ++i) {
          next = Either({OfTerm(term.parts[0], next), end});
        }
      }
      for (int64_t i = 0; i < term.least && !full(); ++i) {
        next = OfTerm(term.parts[0], next);
      }
      return next;
    case Term::kReference:
    case Term::kStates:
      break;  // none here
  }
  return next;
}

int32_t Nfa::Copy(const StringLanguage& language) {
  if (language.empty()) return NewState();
  const int32_t first = static_cast<int32_t>(states_.size());
  for (size_t i = 0; i < language.size(); ++i) NewState();
  if (full()) return 0;
  for (size_t i = 0; i < language.size(); ++i) {
    const StringLanguage::State& from = language.states()[i];
    State& to = states_[first + static_cast<int32_t>(i)];
    to.accepts = from.accepts;
    for (const auto& [range, next] : from.edges) {
      to.edges.push_back({{range}, first + next});
    }
  }
  return first;
}

StringLanguage StringLanguage::All() { return Lengths(0, Term::kUnlimited); }

StringLanguage StringLanguage::Lengths(int64_t least, int64_t most) {
  StringLanguage made;
  const int64_t last = most == Term::kUnlimited ? least : most;
  for (int64_t i = 0; i <= last; ++i) {
    State state;
    state.accepts = i >= least;
    if (i < last || most == Term::kUnlimited) {
      const auto next = static_cast<int32_t>(std::min(i + 1, last));
      for (const CodePoints& range : AnyCharacter()) {
        state.edges.emplace_back(range, next);
      }
    }
    made.states_.push_back(std::move(state));
  }
  return made;
}

StringLanguage StringLanguage::OneOf(const std::vector<std::string>& texts) {
  StringLanguage made;
  if (texts.empty()) return made;
  made.states_.emplace_back();
  for (const std::string& text : texts) {
    int32_t at = 0;
    for (const char32_t c : jinja::FromUtf8(text)) {
      int32_t next = kDead;
      for (const auto& [range, to] : made.states_[at].edges) {
        if (range.first == c) next = to;
      }
      if (next == kDead) {
        next = static_cast<int32_t>(made.states_.size());
        made.states_.emplace_back();
        made.states_[at].edges.push_back({{c, c}, next});
      }
      at = next;
    }
    made.states_[at].accepts = true;
  }
  for (State& state : made.states_) {
    std::sort(state.edges.begin(), state.edges.end(),
              [](const auto& a, const auto& b) {
                return a.first.first < b.first.first;
              });
  }
  return made;
}

// Knuth, Morris and Pratt's automaton: a state is how much of the marker has
// been read.
StringLanguage StringLanguage::Before(const std::string& marker) {
  const jinja::Text signs = jinja::FromUtf8(marker);
  const size_t size = signs.size();
  if (size == 0) return OneOf({""});
  const auto next = [&](size_t read, char32_t sign) {
    jinja::Text seen = signs.substr(0, read) + sign;
    while (seen != signs.substr(0, seen.size())) seen.erase(0, 1);
    return seen.size();
  };
  jinja::Text known = signs;
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  StringLanguage made;
  for (size_t read = 0; read < size; ++read) {
    State state;
    for (const CodePoints& range : AnyCharacter()) {
      uint32_t from = range.first;
      const auto others = [&](uint32_t last) {
        if (from <= last) state.edges.push_back({{from, last}, 0});
      };
      for (const char32_t sign : known) {
        if (sign < range.first || sign > range.last) continue;
        if (sign > 0) others(sign - 1);
        const size_t to = next(read, sign);
        if (to < size) {
          state.edges.push_back({{sign, sign}, static_cast<int32_t>(to)});
        }
        from = sign + 1;
      }
      others(range.last);
    }
    // What has been read of it may be the beginning of an earlier one.
    size_t at = read, more = 0;
    while (more < size && at < size) at = next(at, signs[more++]);
    state.accepts = more == size;
    made.states_.push_back(std::move(state));
  }
  made.Trim();
  return made;
}

StringLanguage StringLanguage::Without(const std::string& marker) {
  StringLanguage made = Before(marker);
  for (State& state : made.states_) state.accepts = true;
  return made;
}

absl::StatusOr<StringLanguage> StringLanguage::Of(const Nfa& nfa, int32_t start,
                                                  Budget* budget) {
  if (nfa.full()) return OverBudget();
  auto states = Determiner(nfa, budget).Run(start);
  if (!states.ok()) return states.status();
  StringLanguage made;
  made.states_ = *std::move(states);
  made.Trim();
  return made;
}

absl::StatusOr<StringLanguage> StringLanguage::Of(const Term& term,
                                                  Budget* budget) {
  Nfa nfa;
  const int32_t end = nfa.NewState();
  nfa.at(end).accepts = true;
  const int32_t start = nfa.OfTerm(term, end);
  return Of(nfa, start, budget);
}

template <typename Keep, typename Accept>
absl::StatusOr<StringLanguage> StringLanguage::Product(
    const StringLanguage& other, Budget* budget, Keep keep,
    Accept accept) const {
  using Pair = std::pair<int32_t, int32_t>;
  absl::flat_hash_map<Pair, int32_t> numbers;
  std::vector<Pair> pairs;
  StringLanguage made;
  const auto number = [&](const Pair& pair) {
    const auto [it, is_new] =
        numbers.try_emplace(pair, static_cast<int32_t>(pairs.size()));
    if (is_new) {
      pairs.push_back(pair);
      made.states_.emplace_back();
    }
    return it->second;
  };
  const Pair start = {empty() ? kDead : 0, other.empty() ? kDead : 0};
  if (!keep(start.first >= 0, start.second >= 0)) return made;
  number(start);
  const std::vector<std::pair<CodePoints, int32_t>> none;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    made.states_[i].accepts = accept(a >= 0 && states_[a].accepts,
                                     b >= 0 && other.states_[b].accepts);
    const auto& left = a >= 0 ? states_[a].edges : none;
    const auto& right = b >= 0 ? other.states_[b].edges : none;
    if (!budget->Spend(8 +
                       4 * static_cast<int64_t>(left.size() + right.size())) ||
        pairs.size() > kMaxStates) {
      return OverBudget();
    }
    // Along both lists of ranges at once.
    size_t l = 0, r = 0;
    for (uint32_t at = 0; l < left.size() || r < right.size();) {
      const auto next_of = [&](const auto& edges, size_t e, int32_t* to) {
        *to = kDead;
        if (e >= edges.size()) return kLastCodePoint;
        if (at < edges[e].first.first) return edges[e].first.first - 1;
        *to = edges[e].second;
        return edges[e].first.last;
      };
      int32_t to_left = kDead, to_right = kDead;
      const uint32_t last =
          std::min(next_of(left, l, &to_left), next_of(right, r, &to_right));
      if (keep(to_left >= 0, to_right >= 0)) {
        const int32_t to = number({to_left, to_right});
        auto& edges = made.states_[i].edges;
        if (!edges.empty() && edges.back().second == to &&
            edges.back().first.last + 1 == at) {
          edges.back().first.last = last;
        } else {
          edges.push_back({{at, last}, to});
        }
      }
      if (last == kLastCodePoint) break;
      at = last + 1;
      while (l < left.size() && left[l].first.last < at) ++l;
      while (r < right.size() && right[r].first.last < at) ++r;
    }
  }
  made.Trim();
  return made;
}

absl::StatusOr<StringLanguage> StringLanguage::And(const StringLanguage& other,
                                                   Budget* budget) const {
  const auto both = [](bool a, bool b) { return a && b; };
  return Product(other, budget, both, both);
}

absl::StatusOr<StringLanguage> StringLanguage::Or(const StringLanguage& other,
                                                  Budget* budget) const {
  const auto either = [](bool a, bool b) { return a || b; };
  return Product(other, budget, either, either);
}

absl::StatusOr<StringLanguage> StringLanguage::ButNot(
    const StringLanguage& other, Budget* budget) const {
  return Product(
      other, budget, [](bool a, bool) { return a; },
      [](bool a, bool b) { return a && !b; });
}

void StringLanguage::Trim() {
  // From the ends backwards.
  std::vector<std::vector<int32_t>> before(states_.size());
  std::vector<int32_t> work;
  std::vector<bool> useful(states_.size(), false);
  for (size_t i = 0; i < states_.size(); ++i) {
    for (const auto& edge : states_[i].edges) {
      before[edge.second].push_back(static_cast<int32_t>(i));
    }
    if (states_[i].accepts) {
      useful[i] = true;
      work.push_back(static_cast<int32_t>(i));
    }
  }
  while (!work.empty()) {
    const int32_t at = work.back();
    work.pop_back();
    for (const int32_t s : before[at]) {
      if (!useful[s]) {
        useful[s] = true;
        work.push_back(s);
      }
    }
  }
  if (states_.empty() || !useful[0]) {
    states_.clear();
    return;
  }
  std::vector<int32_t> number(states_.size(), kDead);
  std::vector<State> kept;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!useful[i]) continue;
    number[i] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(states_[i]));
  }
  for (State& state : kept) {
    auto& edges = state.edges;
    edges.erase(std::remove_if(
                    edges.begin(), edges.end(),
                    [&](const auto& edge) { return number[edge.second] < 0; }),
                edges.end());
    for (auto& edge : edges) edge.second = number[edge.second];
  }
  states_ = std::move(kept);
}

bool StringLanguage::all() const {
  if (size() != 1 || !states_[0].accepts) return false;
  uint32_t characters = 0;
  for (const auto& [range, to] : states_[0].edges) {
    characters += range.last - range.first + 1;
  }
  uint32_t wanted = 0;
  for (const CodePoints& range : AnyCharacter()) {
    wanted += range.last - range.first + 1;
  }
  return characters == wanted;
}

bool StringLanguage::Has(const std::string& text) const {
  if (empty()) return false;
  int32_t at = 0;
  for (const char32_t c : jinja::FromUtf8(text)) {
    int32_t next = kDead;
    for (const auto& [range, to] : states_[at].edges) {
      if (c >= range.first && c <= range.last) next = to;
    }
    if (next == kDead) return false;
    at = next;
  }
  return states_[at].accepts;
}

Term StringLanguage::Texts() const {
  std::vector<CharacterState> made(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    made[i].accepts = states_[i].accepts;
    // One edge for all ranges that lead to one state.
    std::map<int32_t, size_t> edges;
    for (const auto& [range, to] : states_[i].edges) {
      const auto [it, is_new] = edges.try_emplace(to, made[i].edges.size());
      if (is_new) made[i].edges.push_back({{}, to});
      made[i].edges[it->second].on.push_back(range);
    }
    for (CharacterState::Edge& edge : made[i].edges) {
      edge.on = Normalized(std::move(edge.on), /*negated=*/false);
    }
  }
  return States(std::move(made));
}

Term StringLanguage::JsonTexts() const {
  return States(JsonEscaped(*Texts().states));
}

std::vector<CharacterState> JsonEscaped(std::vector<CharacterState> states) {
  static constexpr absl::string_view kCodes = "\"\\\b\f\n\r\t";
  static constexpr absl::string_view kNames = "\"\\bfnrt";
  const size_t count = states.size();
  // Where an escape begins, by what it may stand for and where it leads.
  std::map<std::pair<int32_t, std::vector<uint32_t>>, int32_t> begins;
  const auto new_state = [&] {
    states.emplace_back();
    return static_cast<int32_t>(states.size()) - 1;
  };
  const auto escape = [&](int32_t to, const std::vector<uint32_t>& of) {
    const auto [it, is_new] = begins.try_emplace({to, of}, 0);
    if (!is_new) return it->second;
    const int32_t begin = it->second = new_state();
    std::vector<CodePoints> names, low, high;  // \n; \u000., \u001.
    for (const uint32_t c : of) {
      const size_t place = kCodes.find(static_cast<char>(c));
      if (place != kCodes.npos) {
        const auto name = static_cast<unsigned char>(kNames[place]);
        names.push_back({name, name});
      } else {
        const uint32_t digit = c % 16 < 10 ? '0' + c % 16 : 'a' + c % 16 - 10;
        (c < 16 ? low : high).push_back({digit, digit});
      }
    }
    if (!names.empty()) {
      states[begin].edges.push_back({Normalized(names, false), to});
    }
    if (low.empty() && high.empty()) return begin;
    int32_t at = begin;
    for (const char c : {'u', '0', '0'}) {
      const int32_t next = new_state();
      const auto code = static_cast<unsigned char>(c);
      states[at].edges.push_back({{{code, code}}, next});
      at = next;
    }
    for (const auto& [digits, first] :
         {std::pair(low, uint32_t{'0'}), std::pair(high, uint32_t{'1'})}) {
      if (digits.empty()) continue;
      const int32_t last = new_state();
      states[at].edges.push_back({{{first, first}}, last});
      states[last].edges.push_back({Normalized(digits, false), to});
    }
    return begin;
  };
  for (size_t i = 0; i < count; ++i) {
    std::vector<CharacterState::Edge> edges;
    const std::vector<CharacterState::Edge> before = states[i].edges;
    for (const CharacterState::Edge& edge : before) {
      std::vector<CodePoints> plain;
      std::vector<uint32_t> escaped;
      for (const CodePoints& range : edge.on) {
        uint32_t c = range.first;
        for (; c <= std::min(range.last, 0x5Cu); ++c) {
          if (c < 0x20 || c == '"' || c == '\\') {
            escaped.push_back(c);
          } else {
            plain.push_back({c, c});
          }
        }
        if (c <= range.last) plain.push_back({c, range.last});
      }
      if (!plain.empty()) {
        edges.push_back({Normalized(std::move(plain), false), edge.to});
      }
      if (!escaped.empty()) {
        edges.push_back({{{'\\', '\\'}}, escape(edge.to, escaped)});
      }
    }
    states[i].edges = std::move(edges);
  }
  return states;
}

}  // namespace weft::grammar
