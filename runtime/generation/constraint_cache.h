// Grammars and JSON schemas as constraints: the one place that compiles them,
// for the server, the C interface and the command line.
//
// Idea: a compiled grammar is immutable and learns masks while it is used, so
// those that were used last are kept, by kind and text, and all that ask for
// the same share one. Whoever asks pays on its own thread: the source is
// compiled, the vocabulary is sorted the first time, and the first mask is
// made, so that most grammars that take too much work are refused before they
// reach a scheduler.
//
// Memory has two bounds, since sources of 70 bytes become grammars of
// megabytes: what is kept without a user, and what all grammars hold that are
// alive, waiting requests included. Compiling takes a multiple of the result,
// so few compile at once. Those that wait for it take turns by client, so that
// a client that asks for many holds up others by one or two.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/fair_turns.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/syntax.h"
#include "text/grammar/token_trie.h"
#include "text/token_constraint.h"
#include "text/tokenizer.h"

namespace weft {

// Who asks for a constraint, and what is told beside it.
struct ConstraintAsker {
  uint64_t client = 0;  // as in Request
  // Where it is given, gets what the constraint does not keep
  // (Syntax::dropped).
  std::vector<std::string>* dropped = nullptr;
};

class ConstraintCache {
 public:
  struct Limits {
    int64_t kept_bytes = int64_t{64} << 20;    // grammars and their sources
    int64_t alive_bytes = int64_t{256} << 20;  // of all grammars

    // The most that a cache takes: what is alive, and what those that compile
    // hold beside their results.
    int64_t peak() const { return alive_bytes + kCompiling * kCompilingBytes; }
  };
  // Grammars that are compiled at the same time; what each takes meanwhile, as
  // measured on the largest that are allowed.
  static constexpr int kCompiling = 2;
  static constexpr int64_t kCompilingBytes = int64_t{64} << 20;

  // `tokenizer` must outlive it.
  explicit ConstraintCache(const Tokenizer* tokenizer)
      : ConstraintCache(tokenizer, Limits()) {}
  // `control`: control tokens that grammars may ask for (TokenTrie::kControl).
  ConstraintCache(const Tokenizer* tokenizer, Limits limits,
                  std::vector<int32_t> control = {})
      : tokenizer_(tokenizer), limits_(limits), control_(std::move(control)) {}

  // Each gives a constraint at the beginning of a text. Errors:
  // kInvalidArgument with what is wrong with the source, beginning "grammar:"
  // or "JSON schema:"; kResourceExhausted where living grammars hold too much.

  // `source` in GBNF (text/grammar/gbnf.h).
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfGrammar(
      absl::string_view source, const ConstraintAsker& asker = {});
  // `schema` as JSON text (text/grammar/json_schema.h).
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfJsonSchema(
      absl::string_view schema, const grammar::SchemaOptions& options = {},
      const ConstraintAsker& asker = {});
  // Texts that `pattern` matches as a whole (text/grammar/pattern.h).
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfPattern(
      absl::string_view pattern, const ConstraintAsker& asker = {});
  // Any JSON object.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> OfAnyJson(
      const ConstraintAsker& asker = {});
  // What `make` makes of `source`, of which there is one for each `kind`.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> Of(
      absl::string_view kind, absl::string_view source,
      absl::FunctionRef<absl::StatusOr<grammar::Syntax>()> make,
      const ConstraintAsker& asker = {});

  // Of grammars that are kept, and of all that are alive.
  int64_t kept_bytes() const;
  int64_t alive_bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<grammar::Grammar> grammar;
    int64_t bytes() const {
      return static_cast<int64_t>(key.size()) + grammar->bytes();
    }
  };

  std::shared_ptr<grammar::Grammar> Find(absl::string_view key);
  std::shared_ptr<const grammar::TokenTrie> Trie();
  absl::Status Keep(std::string key, std::shared_ptr<grammar::Grammar> grammar);
  int64_t KeptBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t AliveBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Tokenizer* const tokenizer_;
  const Limits limits_;
  const std::vector<int32_t> control_;

  absl::Mutex trie_mutex_;
  // Made when it is first wanted.
  std::shared_ptr<const grammar::TokenTrie> trie_ ABSL_GUARDED_BY(trie_mutex_);

  FairTurns compiling_{kCompiling};

  mutable absl::Mutex mutex_;
  std::list<Entry> kept_ ABSL_GUARDED_BY(mutex_);  // the last used first
  std::vector<std::weak_ptr<grammar::Grammar>> alive_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
