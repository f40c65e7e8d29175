#include "runtime/generation/constraint_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "text/grammar/gbnf.h"
#include "text/grammar/pattern.h"

namespace weft {
namespace {

using grammar::Syntax;

absl::StatusOr<Syntax> ParseJsonSchema(absl::string_view text,
                                       const grammar::SchemaOptions& options) {
  const auto schema = nlohmann::ordered_json::parse(
      text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (schema.is_discarded()) {
    return absl::InvalidArgumentError("JSON schema: no JSON: give a schema");
  }
  return grammar::FromJsonSchema(schema, options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenConstraint>> ConstraintCache::OfGrammar(
    absl::string_view source, const ConstraintAsker& asker) {
  return Of(
      "grammar", source, [&] { return grammar::ParseGbnf(source); }, asker);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> ConstraintCache::OfJsonSchema(
    absl::string_view schema, const grammar::SchemaOptions& options,
    const ConstraintAsker& asker) {
  return Of(
      absl::StrCat("schema", options.strict ? "!" : "?",
                   options.open ? "+" : ""),
      schema, [&] { return ParseJsonSchema(schema, options); }, asker);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> ConstraintCache::OfPattern(
    absl::string_view pattern, const ConstraintAsker& asker) {
  return Of(
      "pattern", pattern, [&] { return grammar::TextsOfPattern(pattern); },
      asker);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> ConstraintCache::OfAnyJson(
    const ConstraintAsker& asker) {
  return Of(
      "json", "", [] { return grammar::AnyJsonObject(); }, asker);
}

absl::StatusOr<std::unique_ptr<TokenConstraint>> ConstraintCache::Of(
    absl::string_view kind, absl::string_view source,
    absl::FunctionRef<absl::StatusOr<Syntax>()> make,
    const ConstraintAsker& asker) {
  std::string key = absl::StrCat(kind, " ", source);
  const auto use = [&asker](grammar::Grammar& grammar) {
    if (asker.dropped != nullptr) *asker.dropped = grammar.dropped();
    return grammar.NewConstraint();
  };
  if (const auto found = Find(key)) return use(*found);
  const FairTurns::Turn turn(&compiling_, asker.client);
  // It may have been made while this thread waited.
  if (const auto found = Find(key)) return use(*found);
  const std::shared_ptr<const grammar::TokenTrie> trie = Trie();
  WEFT_ASSIGN_OR_RETURN(const Syntax syntax, make());
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<grammar::Grammar> made,
                        grammar::Grammar::Create(syntax, trie));
  std::unique_ptr<TokenConstraint> constraint = use(*made);
  std::vector<uint64_t> mask(MaskWords(trie->vocabulary_size()));
  WEFT_RETURN_IF_ERROR(constraint->Mask(absl::MakeSpan(mask)));
  WEFT_RETURN_IF_ERROR(Keep(std::move(key), std::move(made)));
  // The mask, without what it took to make it.
  return constraint->Clone();
}

std::shared_ptr<grammar::Grammar> ConstraintCache::Find(absl::string_view key) {
  const absl::MutexLock lock(&mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->key != key) continue;
    kept_.splice(kept_.begin(), kept_, kept);
    return kept->grammar;
  }
  return nullptr;
}

std::shared_ptr<const grammar::TokenTrie> ConstraintCache::Trie() {
  const absl::MutexLock lock(&trie_mutex_);
  if (trie_ == nullptr) {
    trie_ = std::make_shared<const grammar::TokenTrie>(*tokenizer_, control_);
  }
  return trie_;
}

absl::Status ConstraintCache::Keep(std::string key,
                                   std::shared_ptr<grammar::Grammar> grammar) {
  const absl::MutexLock lock(&mutex_);
  alive_.erase(std::remove_if(alive_.begin(), alive_.end(),
                              [](const auto& weak) { return weak.expired(); }),
               alive_.end());
  kept_.push_front({std::move(key), grammar});
  alive_.push_back(grammar);
  while (KeptBytes() > limits_.kept_bytes) kept_.pop_back();
  // Those that nobody uses make room first.
  for (auto kept = kept_.end();
       AliveBytes() > limits_.alive_bytes && kept != kept_.begin();) {
    --kept;
    if (kept->grammar.use_count() == 1) kept = kept_.erase(kept);
  }
  const int64_t bytes = AliveBytes();
  if (bytes <= limits_.alive_bytes) return absl::OkStatus();
  kept_.remove_if([&](const Entry& e) { return e.grammar == grammar; });
  return absl::ResourceExhaustedError(
      absl::StrCat("grammar: all that are in use hold ", bytes >> 20,
                   " MiB, at most ", limits_.alive_bytes >> 20,
                   " MiB may: try again later, or use smaller repetitions"));
}

int64_t ConstraintCache::KeptBytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : kept_) bytes += entry.bytes();
  return bytes;
}

int64_t ConstraintCache::AliveBytes() const {
  int64_t bytes = 0;
  for (const std::weak_ptr<grammar::Grammar>& weak : alive_) {
    if (const auto grammar = weak.lock()) bytes += grammar->bytes();
  }
  return bytes;
}

int64_t ConstraintCache::kept_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return KeptBytes();
}

int64_t ConstraintCache::alive_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return AliveBytes();
}

}  // namespace weft
