// Guesses that a text goes on as it went on before, in its prompt or in what
// was written since, or as some other text does (Saxena, "Prompt Lookup
// Decoding", 2023). Good where a text is repeated with changes: edits, quotes,
// answers out of documents.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/speculation/proposer.h"
#include "runtime/speculation/token_index.h"

namespace weft {

class LookupProposer : public Proposer {
 public:
  // `texts`: where else to look.
  explicit LookupProposer(const std::vector<std::vector<int32_t>>& texts = {});

  // Memory for Prepare with these; beside it there are 12 bytes, or up to 20,
  // for each token of `texts`.
  static int64_t BytesFor(int64_t slots, int64_t most_tokens);

  absl::Status Prepare(int32_t slots, int64_t most_tokens,
                       int64_t most_guesses) override;
  void Begin(int32_t slot, uint64_t scope) override;
  Proposal Propose(int32_t slot, absl::Span<const int32_t> tokens,
                   const Sampler& sampler,
                   absl::Span<int32_t> guesses) override;

 private:
  std::vector<int32_t> texts_;  // kBorder between them
  TokenIndex texts_index_;
  std::vector<TokenIndex> slots_;
};

}  // namespace weft
