#include "runtime/api/speculation.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "runtime/speculation/draft_proposer.h"
#include "runtime/speculation/lookup_proposer.h"
#include "runtime/speculation/next_token_proposer.h"

namespace weft {
namespace {

constexpr char kDraft[] = "draft:";
constexpr char kNextTokenBlock[] = "mtp";

absl::StatusOr<std::shared_ptr<Proposer>> MakeLookup(
    const Engine& engine, const SpeculationOptions& options) {
  std::vector<std::vector<int32_t>> texts;
  for (const std::string& text : options.texts) {
    EncodeOptions encode;
    encode.add_special = false;
    WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                          engine.tokenizer().Encode(text, encode));
    texts.push_back(std::move(tokens));
  }
  return std::make_shared<LookupProposer>(texts);
}

absl::StatusOr<std::shared_ptr<Proposer>> MakeDraft(
    const Engine& engine, const SpeculationOptions& options) {
  EngineOptions load = options.draft;
  load.slots = engine.slots();
  load.communicator = nullptr;  // rank 0 guesses alone
  load.model.graph.context = engine.plan().context();
  load.model.graph.next_token_block = false;
  load.shared_threads = engine.SharedThreads();
  load.rewind_rows =
      static_cast<int32_t>(engine.guess_rows()) + DraftProposer::kTogether;
  const std::string path(absl::StripPrefix(options.mode, kDraft));
  absl::StatusOr<std::unique_ptr<Engine>> loaded = Engine::Load(path, load);
  if (absl::IsInvalidArgument(loaded.status())) {
    // It may be made for shorter contexts: then it guesses up to there.
    load.model.graph.context = 0;
    loaded = Engine::Load(path, load);
  }
  if (!loaded.ok()) {
    return absl::Status(
        loaded.status().code(),
        absl::StrCat("draft model: ", loaded.status().message()));
  }
  const std::shared_ptr<Engine> draft = *std::move(loaded);
  const DraftParts parts = {&draft->plan(), &draft->executor(),
                            &draft->cache()};
  return DraftProposer::Create(engine.plan(), parts, draft);
}

absl::StatusOr<std::shared_ptr<Proposer>> MakeNextToken(const Engine& engine) {
  if (engine.next_token_executor() == nullptr) {
    return absl::InvalidArgumentError(
        "speculation: mtp: the model was loaded without its next-token block: "
        "ask for it when it is loaded");
  }
  return std::make_shared<NextTokenProposer>(engine.plan(),
                                             engine.next_token_executor());
}

}  // namespace

void AskFor(absl::string_view mode, EngineOptions* options) {
  if (mode == "off") return;
  options->guess_rows = kGuessRows;
  options->model.graph.next_token_block = mode == kNextTokenBlock;
}

absl::Status CheckSpeculationMode(absl::string_view mode) {
  if (mode == "off" || mode == "lookup" || mode == kNextTokenBlock ||
      (absl::StartsWith(mode, kDraft) && mode != kDraft)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("speculation: '", mode,
                   "': want off, lookup, mtp, or draft: and the path of a "
                   "model"));
}

absl::StatusOr<std::shared_ptr<Proposer>> MakeProposer(
    const Engine& engine, const SpeculationOptions& options) {
  WEFT_RETURN_IF_ERROR(CheckSpeculationMode(options.mode));
  if (options.mode == "off") return nullptr;
  if (options.mode == kNextTokenBlock) return MakeNextToken(engine);
  return options.mode == "lookup" ? MakeLookup(engine, options)
                                  : MakeDraft(engine, options);
}

}  // namespace weft
