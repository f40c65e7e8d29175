// What decides which tokens may come next in one sequence: a grammar, a schema,
// or anything else.
//
// Whoever samples may call Prepare, then calls Mask before each token is chosen
// and Accept with the one that was; calls for one object never overlap, but may
// come from different threads. An object belongs to one sequence; Clone makes
// the one of another sequence.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace weft {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Bits of the tokens that may come next: token t is bit t % 64 of word t / 64
  // of `allowed`, which has a word for every 64 tokens, begun ones included,
  // and comes in with arbitrary bits: all are to be written. End-of-text tokens
  // are allowed where the text may end. Bits beyond the vocabulary are ignored.
  // An error, and so a mask without any token, ends the sequence with that
  // error.
  virtual absl::Status Mask(absl::Span<uint64_t> allowed) = 0;

  // Does some of the work that the next Mask takes, about `units` of a few
  // nanoseconds, so that whoever samples need not wait; true when Mask has
  // nothing left to do but to copy. What goes wrong is told by Mask.
  virtual bool Prepare(int64_t units) {
    (void)units;
    return true;
  }

  // The token that was chosen. It was allowed by the last Mask, and is no
  // end-of-text token that ended the sequence.
  virtual absl::Status Accept(int32_t token) = 0;

  // Another one in the same state.
  virtual std::unique_ptr<TokenConstraint> Clone() const = 0;
};

// Words of a mask.
inline int64_t MaskWords(int64_t vocabulary_size) {
  return (vocabulary_size + 63) / 64;
}

}  // namespace weft
