#include "text/grammar/grammar.h"

#include <algorithm>
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

// Walks the nodes [begin, end) of the trie, all below one node of `depth`,
// where the text stands at `start`. Allows the tokens that the grammar takes;
// calls `ended(node)` where a rule without a caller has ended and tokens go on.
// Stops where the automaton's work is used up.
template <typename Ended>
void Walk(const TokenTrie& trie, Automaton& automaton, int32_t begin,
          int32_t end, size_t depth, int32_t start, absl::Span<uint64_t> mask,
          Ended ended) {
  std::vector<int32_t> sets(TokenTrie::kMaxTokenBytes + 1);
  sets[depth] = start;
  const absl::Span<const TokenTrie::Node> nodes = trie.nodes();
  for (int32_t i = begin; i < end && automaton.Spend(1);) {
    const TokenTrie::Node& node = nodes[i];
    const int32_t set = automaton.Step(sets[node.depth - 1], node.byte);
    if (set == Automaton::kDead) {
      i = node.end;
      continue;
    }
    // A rule that has ended can go on or end in whoever called it.
    for (const int32_t token : trie.TokensAt(node)) Allow(token, mask);
    if (automaton.ended(set) && node.end > i + 1) ended(i);
    if (automaton.places(set).empty()) {
      i = node.end;
      continue;
    }
    sets[node.depth] = set;
    ++i;
  }
}

class Constraint : public TokenConstraint {
 public:
  explicit Constraint(std::shared_ptr<Grammar> grammar)
      : grammar_(std::move(grammar)),
        automaton_(std::make_unique<Automaton>(&grammar_->compiled())) {
    automaton_->AllowWork(Automaton::kMaxWork);
    set_ = automaton_->SetAt({grammar_->compiled().start(), 0});
  }

  absl::Status Mask(absl::Span<uint64_t> allowed) override {
    const TokenTrie& trie = grammar_->trie();
    if (static_cast<int64_t>(allowed.size()) <
        MaskWords(trie.vocabulary_size())) {
      return absl::InvalidArgumentError(
          "grammar: the mask is smaller than the vocabulary");
    }
    MaskBits& mask = masks_[set_];
    if (mask.empty()) {
      automaton_->AllowWork(Automaton::kMaxWork);
      MakeMask(mask);
    }
    WEFT_RETURN_IF_ERROR(Limits());
    std::fill(allowed.begin(), allowed.end(), 0);
    std::copy(mask.begin(), mask.end(), allowed.begin());
    return absl::OkStatus();
  }

  absl::Status Accept(int32_t token) override {
    const TokenTrie& trie = grammar_->trie();
    const absl::string_view bytes =
        token >= 0 && token < trie.vocabulary_size() ? trie.Bytes(token) : "";
    int32_t set = bytes.empty() ? Automaton::kDead : set_;
    automaton_->AllowWork(Automaton::kMaxWork);
    for (const char c : bytes) {
      set = automaton_->Step(set, static_cast<uint8_t>(c));
    }
    WEFT_RETURN_IF_ERROR(Limits());
    if (set == Automaton::kDead) {
      return absl::InvalidArgumentError(
          absl::StrCat("grammar: token ", token, " is not allowed here"));
    }
    set_ = set;
    // Sets and masks are only kept for speed.
    if (masks_.size() > kMaxMasks || automaton_->set_count() > kMaxSets) {
      masks_.clear();
      set_ = automaton_->ForgetAllBut(set_);
    }
    return absl::OkStatus();
  }

  std::unique_ptr<TokenConstraint> Clone() const override {
    return std::unique_ptr<TokenConstraint>(new Constraint(*this));
  }

 private:
  static constexpr size_t kMaxMasks = 256;
  static constexpr int32_t kMaxSets = 20000;

  Constraint(const Constraint& other)
      : grammar_(other.grammar_),
        automaton_(other.automaton_->WithOnly(other.set_, &set_)) {}

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

  void MakeMask(MaskBits& mask) {
    const TokenTrie& trie = grammar_->trie();
    mask.assign(MaskWords(trie.vocabulary_size()), 0);
    const absl::Span<uint64_t> bits = absl::MakeSpan(mask);
    if (automaton_->ended(set_)) {
      for (const int32_t token : trie.ends_of_text()) Allow(token, bits);
    }
    // By value: sets move while others are made.
    const Automaton::Places places = automaton_->places(set_);
    for (const Automaton::Place& place : places) {
      const auto of_state =
          grammar_->MaskOf(place.state, automaton_->work_left());
      const int64_t words = static_cast<int64_t>(mask.size());
      if (of_state == nullptr) {
        automaton_->Spend(automaton_->work_left() + 1);
        return;
      }
      if (!automaton_->Spend(of_state->work + 1 + words / kWordsPerWork)) {
        return;
      }
      for (size_t i = 0; i < mask.size(); ++i) mask[i] |= of_state->allowed[i];
      if (place.stack != 0) GoOnBelow(*of_state, place.stack, bits);
    }
  }

  // From where the topmost rule has ended, with the rule that called it.
  void GoOnBelow(const Grammar::StateMask& of_state, int32_t stack,
                 absl::Span<uint64_t> mask) {
    const TokenTrie& trie = grammar_->trie();
    const int32_t below = automaton_->SetAt(automaton_->Below(stack));
    for (const int32_t node : of_state.ended_at) {
      if (automaton_->overworked()) return;
      const TokenTrie::Node& from = trie.nodes()[node];
      Walk(trie, *automaton_, node + 1, from.end, from.depth, below, mask,
           [](int32_t) {});
    }
  }

  const std::shared_ptr<Grammar> grammar_;
  int32_t set_ = Automaton::kDead;
  std::unique_ptr<Automaton> automaton_;
  absl::flat_hash_map<int32_t, MaskBits> masks_;  // by set
};

}  // namespace

Grammar::Grammar(Compiled compiled, std::shared_ptr<const TokenTrie> trie)
    : compiled_(std::move(compiled)),
      trie_(std::move(trie)),
      masks_(compiled_.state_count()) {}

absl::StatusOr<std::shared_ptr<Grammar>> Grammar::Create(
    const Syntax& syntax, std::shared_ptr<const TokenTrie> trie) {
  WEFT_ASSIGN_OR_RETURN(Compiled compiled, Compiled::Create(syntax));
  return std::shared_ptr<Grammar>(
      new Grammar(std::move(compiled), std::move(trie)));
}

std::unique_ptr<TokenConstraint> Grammar::NewConstraint() {
  return std::make_unique<Constraint>(shared_from_this());
}

int64_t Grammar::bytes() {
  absl::MutexLock lock(&mutex_);
  return compiled_.bytes() + mask_bytes_;
}

std::shared_ptr<const Grammar::StateMask> Grammar::MaskOf(int32_t state,
                                                          int64_t work_left) {
  {
    absl::MutexLock lock(&mutex_);
    if (masks_[state] != nullptr) return masks_[state];
  }
  // Two may walk at once; both find the same.
  auto made = std::make_shared<StateMask>();
  made->allowed.assign(MaskWords(trie_->vocabulary_size()), 0);
  Automaton automaton(&compiled_);
  automaton.AllowWork(work_left);
  Walk(*trie_, automaton, 0, static_cast<int32_t>(trie_->nodes().size()), 0,
       automaton.SetAt({state, 0}), absl::MakeSpan(made->allowed),
       [&](int32_t node) { made->ended_at.push_back(node); });
  if (automaton.overworked() || automaton.too_ambiguous()) return nullptr;
  made->work = work_left - automaton.work_left();
  absl::MutexLock lock(&mutex_);
  if (mask_count_ >= kMaxMasks) {
    std::fill(masks_.begin(), masks_.end(), nullptr);
    mask_count_ = 0;
    mask_bytes_ = 0;
  }
  ++mask_count_;
  mask_bytes_ += static_cast<int64_t>(made->allowed.size() * sizeof(uint64_t) +
                                      made->ended_at.size() * sizeof(int32_t));
  masks_[state] = made;
  return made;
}

}  // namespace weft::grammar
