#include "runtime/speculation/draft_proposer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/first_largest.h"
#include "base/status.h"

namespace weft {
namespace {

absl::Status CheckVocabulary(const Vocabulary& model, const Vocabulary& draft) {
  const auto error = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the draft model does not fit: its vocabulary is another: ", what,
        ": choose a model of the same family"));
  };
  if (model.model() != draft.model()) {
    return error(absl::StrCat("its kind is ", absl::CEscape(draft.model()),
                              ", the model's ", absl::CEscape(model.model())));
  }
  const int both = std::min(model.tokens_size(), draft.tokens_size());
  for (int id = 0; id < both; ++id) {
    if (model.tokens(id) == draft.tokens(id)) continue;
    return error(
        absl::StrCat("token ", id, " is '", absl::CEscape(draft.tokens(id)),
                     "', the model's '", absl::CEscape(model.tokens(id)), "'"));
  }
  // Files fill vocabularies up to round numbers, some more, some less.
  if (std::max(model.tokens_size(), draft.tokens_size()) - both >
      std::max(1024, both / 100)) {
    return error(absl::StrCat("it has ", draft.tokens_size(),
                              " tokens, the model ", model.tokens_size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DraftProposer>> DraftProposer::Create(
    const Plan& plan, const DraftParts& parts,
    std::shared_ptr<const void> owner) {
  if (!parts.plan->model.generates()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the draft model generates nothing: ", parts.plan->model.architecture,
        ": choose a language model"));
  }
  WEFT_RETURN_IF_ERROR(
      CheckVocabulary(plan.vocabulary, parts.plan->vocabulary));
  const int64_t vocabulary =
      std::min(plan.model.vocabulary_size, parts.plan->model.vocabulary_size);
  return std::unique_ptr<DraftProposer>(new DraftProposer(
      parts, std::move(owner), vocabulary,
      plan.model.vocabulary_size == parts.plan->model.vocabulary_size));
}

absl::Status DraftProposer::Prepare(int32_t slots, int64_t, int64_t) {
  const int32_t own = parts_.cache->pool().slots();
  if (slots > own) {
    return absl::InvalidArgumentError(
        absl::StrCat("the draft model was loaded for ", own,
                     " sequences: ", slots, " run: load it for as many"));
  }
  for (int32_t slot = 0; slot < slots; ++slot) {
    texts_.push_back({std::make_unique<Session>(*parts_.plan, parts_.executor,
                                                parts_.cache, slot)});
  }
  return absl::OkStatus();
}

// What ran stays until it is known what the next text begins with.
void DraftProposer::Begin(int32_t slot, uint64_t scope) {
  Text& text = texts_[slot];
  if (text.scope != scope) text.session->Truncate(0).IgnoreError();
  text.scope = scope;
}

Proposal DraftProposer::Propose(int32_t slot, absl::Span<const int32_t> tokens,
                                const Sampler& sampler,
                                absl::Span<int32_t> guesses) {
  Session& session = *texts_[slot].session;
  const absl::Span<const int32_t> ran = session.tokens();
  // The last token runs in any case: its logits are wanted.
  const size_t most = std::min(tokens.size() - 1, ran.size());
  const size_t same =
      std::mismatch(ran.begin(), ran.begin() + most, tokens.begin()).first -
      ran.begin();
  Proposal proposal;
  proposal.strength = kStrengths - 1;
  const auto is_known = [this](int32_t id) { return id < vocabulary_; };
  if (!std::all_of(tokens.begin() + same, tokens.end(), is_known)) return {};
  // A draft that fails guesses nothing; the text goes on without.
  if (same < ran.size() && !session.Truncate(same).ok()) return {};
  absl::Span<const int32_t> next = tokens.subspan(same);
  if (static_cast<int64_t>(next.size() + guesses.size()) > session.room()) {
    return {};
  }
  if (next.size() > kTogether) {
    if (!session.Append(next.first(next.size() - 1)).ok()) return {};
    next = tokens.last(1);
  }
  const auto start = std::chrono::steady_clock::now();
  session.Mark();
  Sampler drawing = sampler;
  for (int32_t& guess : guesses) {
    if (!session.Append(next).ok()) break;
    guess = Guess(session, &drawing);
    ++proposal.tokens;
    next = absl::MakeConstSpan(&guess, 1);
  }
  proposal.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return proposal;
}

// Drawn as the text's next token will be: where both models think alike, the
// same random number gives the same token.
int32_t DraftProposer::Guess(const Session& session, Sampler* drawing) const {
  const absl::Span<const float> logits = session.logits();
  if (same_vocabulary_) {
    const absl::StatusOr<int32_t> drawn =
        drawing->Sample(logits, session.tokens());
    if (drawn.ok()) return *drawn;
  }
  return static_cast<int32_t>(FirstLargest(logits.subspan(0, vocabulary_)));
}

}  // namespace weft
