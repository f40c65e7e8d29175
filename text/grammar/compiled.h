// A grammar that can be matched, byte by byte.
//
// Idea: every rule becomes a small automaton over bytes (classes of characters
// become their UTF-8), in which a reference to a rule is a call: the automata
// together are a pushdown automaton. All are kept in one array of states.
// Where a call is the last thing of a rule, it returns to the caller's caller,
// so that lists written with recursion at their end need no deeper stack. Small
// rules are put in where they are used.
//
// Refused, with the rule's name: a rule that calls itself before it has
// consumed anything (left recursion), one that can never end, one that is not
// there.
//
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

class Compiled {
 public:
  struct ByteEdge {
    uint8_t first, last;
    int32_t to;
  };
  struct Call {
    int32_t rule;  // the state at which it begins
    int32_t then;  // the state to return to; kReturn: to the caller's
  };
  static constexpr int32_t kReturn = -1;

  struct State {
    absl::Span<const ByteEdge> bytes;
    absl::Span<const int32_t> empty;  // states that are reached for nothing
    absl::Span<const Call> calls;
    bool ends_rule;
  };

  // Errors read "grammar: <where>: <why>".
  static absl::StatusOr<Compiled> Create(const Syntax& syntax);

  int32_t start() const { return start_; }
  State state(int32_t id) const {
    const Entry& begin = states_[id];
    const Entry& end = states_[id + 1];
    return {absl::MakeConstSpan(bytes_).subspan(begin.bytes,
                                                end.bytes - begin.bytes),
            absl::MakeConstSpan(empty_).subspan(begin.empty,
                                                end.empty - begin.empty),
            absl::MakeConstSpan(calls_).subspan(begin.calls,
                                                end.calls - begin.calls),
            begin.ends_rule};
  }
  int32_t state_count() const {
    return static_cast<int32_t>(states_.size()) - 1;
  }
  int64_t bytes() const;

 private:
  friend class Compiler;
  Compiled() = default;

  // Where the edges of a state begin; those of the next one follow.
  struct Entry {
    int32_t bytes, empty, calls;
    bool ends_rule;
  };
  std::vector<Entry> states_;  // and one more
  std::vector<ByteEdge> bytes_;
  std::vector<int32_t> empty_;
  std::vector<Call> calls_;
  int32_t start_ = 0;
};

}  // namespace weft::grammar
