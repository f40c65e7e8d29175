// What a text must look like, as constraints on tokens: response_format,
// grammar and forced calls of tools.
//
// Idea: a grammar learns masks while it is used, so the last ones are kept, by
// what they were made of, and requests of the same form share one. The first
// mask is made here, on the caller's thread: most grammars that take too much
// work are refused before they reach a scheduler.
//
// Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "serve/openai_request.h"
#include "serve/tool_calls.h"
#include "text/grammar/grammar.h"
#include "text/grammar/syntax.h"
#include "text/token_constraint.h"
#include "text/tokenizer.h"

namespace weft {

class OutputGrammars {
 public:
  // `tokenizer` must outlive it.
  explicit OutputGrammars(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Null for text. Errors name the field of the request.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> ForFormat(
      const GenerationFields& fields);

  // One call of `name`, or of any of the tools when it is empty, in this custom
  // (kNone is written as kBare).
  absl::StatusOr<std::unique_ptr<TokenConstraint>> ForToolCall(
      ToolCustom custom, const nlohmann::ordered_json& tools,
      const std::string& name);

 private:
  using Maker = std::function<absl::StatusOr<grammar::Syntax>()>;
  // Errors are those of `field`.
  absl::StatusOr<std::unique_ptr<TokenConstraint>> Find(const char* field,
                                                        const std::string& key,
                                                        const Maker& make);

  const Tokenizer* tokenizer_;
  absl::Mutex mutex_;
  // Made when it is first wanted.
  std::shared_ptr<const grammar::TokenTrie> trie_ ABSL_GUARDED_BY(mutex_);
  // The last used first.
  std::list<std::pair<std::string, std::shared_ptr<grammar::Grammar>>> kept_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
