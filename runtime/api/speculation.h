// Who guesses tokens, by name: for a Scheduler's options.
//
//   weft::SpeculationOptions speculation;
//   speculation.mode = "lookup";
//   weft::AskFor(speculation.mode, &engine_options);
//   auto engine = weft::Engine::Load("model.gguf", engine_options);
//   scheduler_options.proposer = *weft::MakeProposer(**engine, speculation);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/api/engine.h"
#include "runtime/speculation/proposer.h"

namespace weft {

// For EngineOptions::guess_rows: with the row of a text that is alone, as many
// as kernels take together.
inline constexpr int64_t kGuessRows = 15;

struct SpeculationOptions {
  // "off"; "lookup" (lookup_proposer.h); "mtp", the model's own next-token
  // block (next_token_proposer.h); or "draft:" and the path of a model
  // (draft_proposer.h).
  std::string mode = "off";
  // Where else lookup looks: texts.
  std::vector<std::string> texts;
  // How the draft model is loaded; sequences, context and threads are those of
  // the engine.
  EngineOptions draft;
};

// An error for a mode that there is not.
absl::Status CheckSpeculationMode(absl::string_view mode);

// Asks of the engine that is to be loaded what the mode needs of it.
void AskFor(absl::string_view mode, EngineOptions* options);

// Null for "off". The engine outlives the proposer's use. Errors: those of
// Engine::Load and DraftProposer::Create, for the draft model; texts that
// cannot be encoded; an engine without its next-token block.
absl::StatusOr<std::shared_ptr<Proposer>> MakeProposer(
    const Engine& engine, const SpeculationOptions& options);

}  // namespace weft
