// Grammars as constraints on tokens.
//
// Idea: what a token may be depends almost only on the state of the grammar,
// not on the stack below it. So for each state the vocabulary is walked once
// (token_trie.h), with an unknown stack: that gives the tokens that go through
// whatever lies below, and the places in the trie where the state's rule has
// ended. A mask is the union of these over the places where the text stands;
// only from the latter places on, the walk goes on with the real stack. Masks
// of whole sets are kept, too, as most steps return to a set that was there
// before.
//
// So the first mask in a state costs a walk over the vocabulary (milliseconds),
// any further one microseconds. Where every character has a state of its own,
// as in strings with a greatest length, so does every mask.
//
// Limits: a token is judged by its bytes; control tokens are never allowed
// within a text. A set with more than Automaton::kMaxPlaces places is an error
// of kInvalidArgument, and so is a mask or a token that takes more work than
// Automaton::kMaxWork: grammars come from clients, and whoever samples must not
// wait for them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "text/grammar/automaton.h"
#include "text/grammar/compiled.h"
#include "text/grammar/token_trie.h"
#include "text/token_constraint.h"

namespace weft::grammar {

// Tokens allowed in one state, as MaskWords words.
using MaskBits = std::vector<uint64_t>;

// Shared by all sequences that use it. Thread-safe.
class Grammar : public std::enable_shared_from_this<Grammar> {
 public:
  static absl::StatusOr<std::shared_ptr<Grammar>> Create(
      const Syntax& syntax, std::shared_ptr<const TokenTrie> trie);

  // At the beginning of a text.
  std::unique_ptr<TokenConstraint> NewConstraint();

  const Compiled& compiled() const { return compiled_; }
  const TokenTrie& trie() const { return *trie_; }

  // What it holds now: it grows with the masks that are made.
  int64_t bytes();

  static constexpr int kMaxMasks = 1000;
  struct StateMask {
    MaskBits allowed;
    // Nodes of the trie where the rule has ended and tokens go on.
    std::vector<int32_t> ended_at;
    // What the walk took. Whoever uses a mask counts it even if it was there
    // already, so that a text fails at the same place each time.
    int64_t work = 0;
  };
  // Walks the vocabulary if nobody has asked before. At most kMaxMasks are
  // kept. Null if it takes more than `work_left`.
  std::shared_ptr<const StateMask> MaskOf(int32_t state, int64_t work_left);

 private:
  Grammar(Compiled compiled, std::shared_ptr<const TokenTrie> trie);

  const Compiled compiled_;
  const std::shared_ptr<const TokenTrie> trie_;
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<const StateMask>> masks_
      ABSL_GUARDED_BY(mutex_);  // by state
  int mask_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t mask_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::grammar
