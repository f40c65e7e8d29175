// Grammars as constraints on tokens.
//
// Idea: what a token may be depends almost only on the state of the grammar,
// not on the stack below it. So for each state the vocabulary is walked once
// (token_trie.h), with an unknown stack: that gives the tokens that go through
// whatever lies below, and the places in the trie where the state's rule has
// ended and some token is not allowed yet. A mask is the union of these over
// the places where the text stands; only from the latter places on, the walk
// goes on with the real stack. Where a text stands at many places, as among a
// thousand optional properties, the vocabulary is walked once for all of them
// instead. Masks of whole sets are kept, too, as most steps return to a set
// that was there before.
//
// So the first mask in a state costs a walk over the vocabulary (milliseconds),
// any further one microseconds. Where every character has a state of its own,
// as in strings with a greatest length, so does every mask. All of it can be
// done in small parts (TokenConstraint::Prepare), also what a token makes of
// the text: whoever samples needs only copy masks.
//
// Limits: a token is judged by its bytes; control tokens are never allowed
// within a text. A set with more than Automaton::kMaxPlaces places is an error
// of kInvalidArgument, and so is a mask or a token that takes more work than
// Automaton::kMaxWork: grammars come from clients. What is kept for speed is
// bounded in bytes and thrown away beyond.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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
  // Syntax::dropped.
  const std::vector<std::string>& dropped() const { return dropped_; }

  // What it holds now: it grows with the masks that are made.
  int64_t bytes();

  // Of masks of states.
  static constexpr int64_t kMaxMaskBytes = int64_t{8} << 20;
  struct StateMask {
    MaskBits allowed;
    // Nodes of the trie where the rule has ended and tokens go on that are not
    // all allowed.
    std::vector<int32_t> ended_at;
    // What the walk took. Whoever uses a mask counts it even if it was there
    // already, so that a text fails at the same place each time.
    int64_t work = 0;

    int64_t bytes() const {
      return static_cast<int64_t>(allowed.size() * sizeof(uint64_t) +
                                  ended_at.size() * sizeof(int32_t));
    }
  };
  // Null if it is not kept.
  std::shared_ptr<const StateMask> FindMask(int32_t state);
  void KeepMask(int32_t state, std::shared_ptr<const StateMask> mask);

 private:
  Grammar(Compiled compiled, std::shared_ptr<const TokenTrie> trie,
          std::vector<std::string> dropped);

  const Compiled compiled_;
  const std::shared_ptr<const TokenTrie> trie_;
  const std::vector<std::string> dropped_;
  absl::Mutex mutex_;
  absl::flat_hash_map<int32_t, std::shared_ptr<const StateMask>> masks_
      ABSL_GUARDED_BY(mutex_);  // by state
  int64_t mask_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::grammar
