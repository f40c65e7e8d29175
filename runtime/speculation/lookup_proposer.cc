#include "runtime/speculation/lookup_proposer.h"

#include <algorithm>

namespace weft {
namespace {

// No token.
constexpr int32_t kBorder = -1;

std::vector<int32_t> Join(const std::vector<std::vector<int32_t>>& texts) {
  std::vector<int32_t> all;
  for (const std::vector<int32_t>& text : texts) {
    all.insert(all.end(), text.begin(), text.end());
    all.push_back(kBorder);
  }
  return all;
}

// Of so many tokens that agree.
int StrengthOf(int64_t tokens) { return tokens < 4 ? 0 : tokens < 8 ? 1 : 2; }

}  // namespace

LookupProposer::LookupProposer(const std::vector<std::vector<int32_t>>& texts)
    : texts_(Join(texts)), texts_index_(static_cast<int64_t>(texts_.size())) {
  texts_index_.Extend(texts_);
}

int64_t LookupProposer::BytesFor(int64_t slots, int64_t most_tokens) {
  return slots * TokenIndex::BytesFor(most_tokens);
}

absl::Status LookupProposer::Prepare(int32_t slots, int64_t most_tokens,
                                     int64_t) {
  slots_.assign(slots, TokenIndex(most_tokens));
  return absl::OkStatus();
}

void LookupProposer::Begin(int32_t slot, uint64_t) { slots_[slot].Clear(); }

Proposal LookupProposer::Propose(int32_t slot, absl::Span<const int32_t> tokens,
                                 const Sampler&, absl::Span<int32_t> guesses) {
  TokenIndex& index = slots_[slot];
  index.Extend(tokens);
  const TokenIndex::Match own = index.Find(tokens, tokens);
  const TokenIndex::Match other =
      own.tokens < TokenIndex::kMostCompared && !texts_.empty()
          ? texts_index_.Find(texts_, tokens)
          : TokenIndex::Match();
  Proposal proposal;
  proposal.strength = StrengthOf(std::max(own.tokens, other.tokens));
  const int64_t most = static_cast<int64_t>(guesses.size());
  int64_t& count = proposal.tokens;
  if (other.tokens > own.tokens) {
    const auto next = texts_.begin() + other.end;
    while (count < most && next[count] != kBorder) {
      guesses[count] = next[count];
      ++count;
    }
  } else if (own.tokens > 0) {
    // A text that repeats itself goes on to do so behind its end.
    const int64_t left = static_cast<int64_t>(tokens.size()) - own.end;
    for (; count < most; ++count) {
      guesses[count] =
          count < left ? tokens[own.end + count] : guesses[count - left];
    }
  }
  return proposal;
}

}  // namespace weft
