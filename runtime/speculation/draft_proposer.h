// Guesses of a smaller model with the same vocabulary, token by token
// (Leviathan et al. 2023, see proposer.h): drawn as the text's tokens are, with
// the random numbers that will draw these.
//
// It has a plan and a cache of its own, with a sequence for each slot, and runs
// behind the text: what of it agrees with what ran before is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/execution/session.h"
#include "runtime/speculation/proposer.h"

namespace weft {

// What a draft model runs on, as Session takes it.
struct DraftParts {
  const Plan* plan;
  Executor* executor;
  KvCache* cache;
};

class DraftProposer : public Proposer {
 public:
  // Tokens that run in one step with the one that guesses begin at: so many
  // more than guesses should EngineOptions::rewind_rows be.
  static constexpr int32_t kTogether = 4;

  // For texts of a model with this plan. `owner` holds the parts. Errors: the
  // draft model is no generator, or has other tokens (says which).
  static absl::StatusOr<std::unique_ptr<DraftProposer>> Create(
      const Plan& plan, const DraftParts& parts,
      std::shared_ptr<const void> owner);

  absl::Status Prepare(int32_t slots, int64_t most_tokens,
                       int64_t most_guesses) override;
  void Begin(int32_t slot, uint64_t scope) override;
  Proposal Propose(int32_t slot, absl::Span<const int32_t> tokens,
                   const Sampler& sampler,
                   absl::Span<int32_t> guesses) override;
  bool takes_time() const override { return true; }

 private:
  DraftProposer(const DraftParts& parts, std::shared_ptr<const void> owner,
                int64_t vocabulary, bool same_vocabulary)
      : parts_(parts),
        owner_(std::move(owner)),
        vocabulary_(vocabulary),
        same_vocabulary_(same_vocabulary) {}

  int32_t Guess(const Session& session, Sampler* drawing) const;

  const DraftParts parts_;
  const std::shared_ptr<const void> owner_;
  const int64_t vocabulary_;    // tokens that both models have
  const bool same_vocabulary_;  // neither has others
  struct Text {
    std::unique_ptr<Session> session;
    uint64_t scope = 0;
  };
  std::vector<Text> texts_;  // by slot
};

}  // namespace weft
