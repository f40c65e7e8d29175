// Fuzz target: what any grammar costs. Bytes are a grammar, or a JSON schema;
// texts are drawn from the masks of what compiles. Every mask is made in small
// parts of which there are no more than the allowed work has, and what a
// grammar holds stays within its bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tests/text/test_vocabulary.h"
#include "text/grammar/automaton.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"

namespace {

using weft::grammar::Automaton;
using weft::grammar::Grammar;

constexpr int kTokens = 12;
constexpr int64_t kPart = 20000;
// What a state's walk takes counts for it and for the mask.
constexpr int64_t kMaxParts = 2 * Automaton::kMaxWork / kPart + 100;
// 500,000 states with some edges each, and masks.
constexpr int64_t kMaxBytes = int64_t{100} << 20;

std::shared_ptr<const weft::grammar::TokenTrie> Trie() {
  static const auto* const tokenizer =
      weft::MakeTokenizer(weft::BpeVocabulary("gpt-2")).release();
  static const auto* const trie =
      new std::shared_ptr<const weft::grammar::TokenTrie>(
          std::make_shared<const weft::grammar::TokenTrie>(*tokenizer));
  return *trie;
}

void Try(const absl::StatusOr<weft::grammar::Syntax>& syntax, size_t seed) {
  if (!syntax.ok()) return;
  const auto grammar = Grammar::Create(*syntax, Trie());
  if (!grammar.ok()) return;
  const auto constraint = (*grammar)->NewConstraint();
  const int32_t tokens = Trie()->vocabulary_size();
  std::vector<uint64_t> mask(weft::MaskWords(tokens));
  for (int i = 0; i < kTokens; ++i) {
    int64_t parts = 0;
    while (!constraint->Prepare(kPart)) {
      if (++parts > kMaxParts) std::abort();
    }
    if ((*grammar)->bytes() > kMaxBytes) std::abort();
    if (!constraint->Mask(absl::MakeSpan(mask)).ok()) return;
    int32_t chosen = -1;
    for (int32_t n = 0; n < tokens && chosen < 0; ++n) {
      const auto t = static_cast<int32_t>((seed + n) % tokens);
      const bool allowed = (mask[t / 64] >> (t % 64) & 1) != 0;
      if (allowed && !Trie()->Bytes(t).empty()) chosen = t;
    }
    if (chosen < 0) return;
    // What a mask allows is taken.
    if (!constraint->Accept(chosen).ok()) std::abort();
    seed = seed * 31 + chosen;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view source(reinterpret_cast<const char*>(data), size);
  Try(weft::grammar::ParseGbnf(source), size);
  const auto json = nlohmann::ordered_json::parse(source, nullptr,
                                                  /*allow_exceptions=*/false);
  if (!json.is_discarded()) Try(weft::grammar::FromJsonSchema(json), size);
  return 0;
}
