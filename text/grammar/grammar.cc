#include "text/grammar/grammar.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft::grammar {
namespace {

void Allow(int32_t token, absl::Span<uint64_t> mask) {
  mask[token / 64] |= uint64_t{1} << (token % 64);
}

// Units of work (automaton.h): what the words of a mask cost that are joined
// with those of another.
constexpr int64_t kWordsPerWork = 16;

// Beyond as many, the vocabulary is walked once for all places.
constexpr size_t kFewPlaces = 16;

bool AllAllowed(absl::Span<const int32_t> tokens,
                absl::Span<const uint64_t> mask) {
  return std::all_of(tokens.begin(), tokens.end(), [&](int32_t token) {
    return (mask[token / 64] >> (token % 64) & 1) != 0;
  });
}

// A walk over nodes of the trie, which can be left and gone on with.
class Walk {
 public:
  // Over [begin, end), all below one node of `depth`, where the text stands at
  // `start`.
  void Begin(int32_t begin, int32_t end, size_t depth, int32_t start) {
    at_ = begin;
    end_ = end;
    sets_.resize(TokenTrie::kMaxTokenBytes + 1);
    sets_[depth] = start;
  }

  // Goes on for about `units` of the automaton's work; true at the end, or
  // where there is no work left. Allows the tokens that the grammar takes;
  // calls `ended(node)` where a rule without a caller has ended and tokens go
  // on.
  template <typename Ended>
  bool Go(const TokenTrie& trie, Automaton& automaton, int64_t units,
          absl::Span<uint64_t> mask, Ended ended) {
    const absl::Span<const TokenTrie::Node> nodes = trie.nodes();
    const int64_t until = automaton.work_left() - units;
    while (at_ < end_ && automaton.Spend(1)) {
      if (automaton.work_left() < until) return false;
      const TokenTrie::Node& node = nodes[at_];
      const int32_t set = automaton.Step(sets_[node.depth - 1], node.byte);
      if (set == Automaton::kDead) {
        at_ = node.end;
        continue;
      }
      // A rule that has ended can go on or end in whoever called it.
      for (const int32_t token : trie.TokensAt(node)) Allow(token, mask);
      if (automaton.ended(set) && node.end > at_ + 1) ended(at_);
      if (automaton.places(set).empty()) {
        at_ = node.end;
        continue;
      }
      sets_[node.depth] = set;
      ++at_;
    }
    return true;
  }

 private:
  int32_t at_ = 0, end_ = 0;
  std::vector<int32_t> sets_;  // by depth
};

// The mask of a state in the making.
class StateWalk {
 public:
  StateWalk(const Grammar& grammar, int32_t state, int64_t work_left)
      : trie_(grammar.trie()),
        work_allowed_(work_left),
        automaton_(&grammar.compiled()),
        made_(std::make_shared<Grammar::StateMask>()) {
    made_->allowed.assign(MaskWords(trie_.vocabulary_size()), 0);
    automaton_.AllowWork(work_left);
    walk_.Begin(0, static_cast<int32_t>(trie_.nodes().size()), 0,
                automaton_.SetAt({state, 0}));
  }

  // Adds what it spends to `spent`; true at the end.
  bool Go(int64_t units, int64_t* spent) {
    const int64_t before = automaton_.work_left();
    const bool done =
        walk_.Go(trie_, automaton_, units, absl::MakeSpan(made_->allowed),
                 [this](int32_t node) { made_->ended_at.push_back(node); });
    if (done) LeaveOutAllowed();
    *spent += before - automaton_.work_left();
    return done;
  }

  // At the end; null if it took too much.
  std::shared_ptr<const Grammar::StateMask> Take() {
    if (automaton_.overworked() || automaton_.too_ambiguous()) return nullptr;
    made_->work = work_allowed_ - automaton_.work_left();
    return std::move(made_);
  }

 private:
  void LeaveOutAllowed() {
    std::vector<int32_t>& nodes = made_->ended_at;
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                               [this](int32_t node) {
                                 automaton_.Spend(1);
                                 return AllAllowed(
                                     trie_.TokensBelow(trie_.nodes()[node]),
                                     made_->allowed);
                               }),
                nodes.end());
    nodes.shrink_to_fit();
  }

  const TokenTrie& trie_;
  const int64_t work_allowed_;
  Automaton automaton_;
  std::shared_ptr<Grammar::StateMask> made_;
  Walk walk_;
};

class Constraint : public TokenConstraint {
 public:
  explicit Constraint(std::shared_ptr<Grammar> grammar)
      : grammar_(std::move(grammar)),
        automaton_(std::make_unique<Automaton>(&grammar_->compiled())) {
    automaton_->AllowWork(Automaton::kMaxWork);
    set_ = automaton_->SetAt({grammar_->compiled().start(), 0});
    status_ = Limits();
  }

  bool Prepare(int64_t units) override {
    while (status_.ok() && (!accepted_.empty() || Known() == nullptr)) {
      if (units <= 0) return false;
      units -= accepted_.empty() ? GoOnMaking(units) : TakeByte();
      if (status_.ok()) status_ = Limits();
    }
    return true;
  }

  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    if (static_cast<int64_t>(allowed.size()) <
        MaskWords(grammar_->trie().vocabulary_size())) {
      return absl::InvalidArgumentError(
          "grammar: the mask is smaller than the vocabulary");
    }
    Prepare(std::numeric_limits<int64_t>::max());
    WEFT_RETURN_IF_ERROR(status_);
    const MaskBits& mask = *Known();
    std::fill(allowed.begin(), allowed.end(), 0);
    std::copy(mask.begin(), mask.end(), allowed.begin());
    return absl::OkStatus();
  }

  absl::Status Accept(int32_t token) override {
    const TokenTrie& trie = grammar_->trie();
    while (status_.ok() && !accepted_.empty()) {
      TakeByte();
      if (status_.ok()) status_ = Limits();
    }
    WEFT_RETURN_IF_ERROR(status_);
    const absl::string_view bytes =
        token >= 0 && token < trie.vocabulary_size() ? trie.Bytes(token) : "";
    automaton_->AllowWork(Automaton::kMaxWork);
    bool allowed = !bytes.empty();
    if (const MaskBits* mask = Known(); allowed && mask != nullptr) {
      // Its steps are left to Prepare.
      allowed = ((*mask)[token / 64] >> (token % 64) & 1) != 0;
      if (allowed) accepted_ = bytes;
    } else if (allowed) {
      int32_t set = set_;
      for (const char c : bytes) {
        set = automaton_->Step(set, static_cast<uint8_t>(c));
      }
      WEFT_RETURN_IF_ERROR(status_ = Limits());
      allowed = set != Automaton::kDead;
      if (allowed) MoveTo(set);
    }
    return allowed ? absl::OkStatus()
                   : absl::InvalidArgumentError(absl::StrCat(
                         "grammar: token ", token, " is not allowed here"));
  }

  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::unique_ptr<TokenConstraint>(new Constraint(*this));
  }

 private:
  // Of masks and of sets that are kept.
  static constexpr size_t kMaxMaskBytes = 2 << 20;
  static constexpr int64_t kMaxSetBytes = 2 << 20;

  // A mask, place by place, or by one walk for all of them.
  struct Making {
    MaskBits mask;
    Automaton::Places places;
    size_t place = 0;  // the next one
    std::unique_ptr<StateWalk> state_walk;
    // Of the place before: what is left to walk with its stack.
    std::shared_ptr<const Grammar::StateMask> of_state;
    size_t ended = 0;  // the next of of_state->ended_at
    int32_t below = Automaton::kDead;
    bool walking = false;
  };

  Constraint(const Constraint& other)
      : grammar_(other.grammar_),
        automaton_(other.automaton_->WithOnly(other.set_, &set_)),
        accepted_(other.accepted_),
        status_(other.status_) {
    if (const MaskBits* mask = other.Known()) masks_[set_] = *mask;
  }

  // The mask where the text stands, without what was accepted last; null if it
  // is not made yet.
  const MaskBits* Known() const {
    const auto found = masks_.find(set_);
    return found == masks_.end() ? nullptr : &found->second;
  }

  absl::Status Limits() const {
    if (automaton_->overworked()) {
      return absl::InvalidArgumentError(
          "grammar: one token takes more work than is allowed: simplify nested "
          "or optional repetitions");
    }
    if (automaton_->too_ambiguous()) {
      return absl::InvalidArgumentError(
          "grammar: it is too ambiguous here: a text can be read in too many "
          "ways: simplify what can be read in more than one");
    }
    return absl::OkStatus();
  }

  void MoveTo(int32_t set) {
    set_ = set;
    making_.reset();
    // Sets and masks are only kept for speed.
    if (automaton_->bytes() > needed_bytes_ + kMaxSetBytes) {
      masks_.clear();
      set_ = automaton_->ForgetAllBut(set_);
      needed_bytes_ = automaton_->bytes();
    }
    const size_t words = MaskWords(grammar_->trie().vocabulary_size());
    if (masks_.size() * words * sizeof(uint64_t) > kMaxMaskBytes) {
      masks_.clear();
    }
  }

  // Goes on by one byte of what was accepted; the units that it took.
  int64_t TakeByte() {
    const int64_t before = automaton_->work_left();
    const int32_t set =
        automaton_->Step(set_, static_cast<uint8_t>(accepted_[0]));
    const int64_t spent = before - automaton_->work_left() + 1;
    accepted_.remove_prefix(1);
    if (accepted_.empty()) {
      MoveTo(set);
    } else {
      set_ = set;
    }
    return spent;
  }

  // Some of the work of a mask, about `units`; what it took.
  int64_t GoOnMaking(int64_t units) {
    const TokenTrie& trie = grammar_->trie();
    const int32_t end = static_cast<int32_t>(trie.nodes().size());
    if (making_ == nullptr) BeginMaking();
    Making& m = *making_;
    const absl::Span<uint64_t> bits = absl::MakeSpan(m.mask);
    const int64_t before = automaton_->work_left();
    int64_t of_others = 0;
    if (m.state_walk != nullptr) {
      if (m.state_walk->Go(units, &of_others)) {
        m.of_state = m.state_walk->Take();
        m.state_walk.reset();
        if (m.of_state != nullptr) {
          grammar_->KeepMask(m.places[m.place].state, m.of_state);
        }
        AddPlace();
        return of_others + 1;
      }
    } else if (m.walking) {
      m.walking = !walk_.Go(trie, *automaton_, units, bits, [](int32_t) {});
    } else if (m.of_state != nullptr) {
      GoOnBelow();
    } else if (m.places.size() > kFewPlaces) {
      m.places.clear();
      walk_.Begin(0, end, 0, set_);
      m.walking = true;
    } else if (m.place < m.places.size()) {
      m.of_state = grammar_->FindMask(m.places[m.place].state);
      if (m.of_state != nullptr) {
        AddPlace();
      } else {
        m.state_walk = std::make_unique<StateWalk>(
            *grammar_, m.places[m.place].state, automaton_->work_left());
      }
    } else {
      masks_[set_] = std::move(m.mask);
      making_.reset();
    }
    return before - automaton_->work_left() + of_others + 1;
  }

  void BeginMaking() {
    automaton_->AllowWork(Automaton::kMaxWork);
    making_ = std::make_unique<Making>();
    const TokenTrie& trie = grammar_->trie();
    making_->mask.assign(MaskWords(trie.vocabulary_size()), 0);
    // By value: sets move while others are made.
    making_->places = automaton_->places(set_);
    if (!automaton_->ended(set_)) return;
    for (const int32_t token : trie.ends_of_text()) {
      Allow(token, absl::MakeSpan(making_->mask));
    }
  }

  // Allows what the state of the next place allows.
  void AddPlace() {
    Making& m = *making_;
    const int64_t words = static_cast<int64_t>(m.mask.size());
    if (m.of_state == nullptr ||
        !automaton_->Spend(m.of_state->work + 1 + words / kWordsPerWork)) {
      automaton_->Spend(automaton_->work_left() + 1);
      return;
    }
    for (size_t i = 0; i < m.mask.size(); ++i) {
      m.mask[i] |= m.of_state->allowed[i];
    }
    const int32_t stack = m.places[m.place++].stack;
    m.ended = 0;
    m.below = Automaton::kDead;
    if (stack != 0 && !m.of_state->ended_at.empty()) {
      m.below = automaton_->SetBelow(stack);
    }
    if (m.below == Automaton::kDead) m.of_state = nullptr;
  }

  // From where the topmost rule has ended, with the rule that called it.
  void GoOnBelow() {
    const TokenTrie& trie = grammar_->trie();
    Making& m = *making_;
    if (m.ended == m.of_state->ended_at.size()) {
      m.of_state = nullptr;
      return;
    }
    const TokenTrie::Node& node = trie.nodes()[m.of_state->ended_at[m.ended++]];
    automaton_->Spend(1);
    if (AllAllowed(trie.TokensBelow(node), m.mask)) return;
    const int32_t begin = static_cast<int32_t>(&node - trie.nodes().data()) + 1;
    walk_.Begin(begin, node.end, node.depth, m.below);
    m.walking = true;
  }

  const std::shared_ptr<Grammar> grammar_;
  int32_t set_ = Automaton::kDead;
  std::unique_ptr<Automaton> automaton_;
  int64_t needed_bytes_ = 0;  // of it, when all else was thrown away
  absl::flat_hash_map<int32_t, MaskBits> masks_;  // by set
  // What is left of the token that was accepted last; in the trie.
  absl::string_view accepted_;
  std::unique_ptr<Making> making_;
  Walk walk_;
  absl::Status status_;
};

}  // namespace

Grammar::Grammar(Compiled compiled, std::shared_ptr<const TokenTrie> trie,
                 std::vector<std::string> dropped)
    : compiled_(std::move(compiled)),
      trie_(std::move(trie)),
      dropped_(std::move(dropped)) {}

absl::StatusOr<std::shared_ptr<Grammar>> Grammar::Create(
    const Syntax& syntax, std::shared_ptr<const TokenTrie> trie) {
  WEFT_ASSIGN_OR_RETURN(Compiled compiled, Compiled::Create(syntax));
  return std::shared_ptr<Grammar>(
      new Grammar(std::move(compiled), std::move(trie), syntax.dropped));
}

std::unique_ptr<TokenConstraint> Grammar::NewConstraint() {
  return std::make_unique<Constraint>(shared_from_this());
}

int64_t Grammar::bytes() {
  absl::MutexLock lock(&mutex_);
  return compiled_.bytes() + mask_bytes_;
}

std::shared_ptr<const Grammar::StateMask> Grammar::FindMask(int32_t state) {
  const absl::MutexLock lock(&mutex_);
  const auto found = masks_.find(state);
  return found == masks_.end() ? nullptr : found->second;
}

void Grammar::KeepMask(int32_t state, std::shared_ptr<const StateMask> mask) {
  const absl::MutexLock lock(&mutex_);
  // Two may have walked at once; both found the same.
  if (masks_.contains(state)) return;
  mask_bytes_ += mask->bytes();
  if (mask_bytes_ > kMaxMaskBytes) {
    masks_.clear();
    mask_bytes_ = mask->bytes();
  }
  masks_[state] = std::move(mask);
}

}  // namespace weft::grammar
