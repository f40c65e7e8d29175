#include "cli/speculation_flags.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/api/speculation.h"

namespace weft {

void SpeculationFlags::AddTo(CLI::App& command) {
  command
      .add_option("--speculate", mode,
                  "who guesses tokens, so that several run in one step where "
                  "that is faster: off; lookup: how the text, or one of "
                  "--lookup-file, went on before; mtp: the model's own "
                  "next-token block, where its file has one; draft:MODEL: a "
                  "smaller model with the same vocabulary. Results are the "
                  "same to the bit")
      ->capture_default_str();
  command
      .add_option("--lookup-file", files,
                  "a text that may be repeated, for --speculate lookup; may be "
                  "given several times")
      ->allow_extra_args(false);
}

absl::Status SpeculationFlags::Check() const {
  if (absl::Status s = CheckSpeculationMode(mode); !s.ok()) {
    return UsageError(absl::StrCat("--speculate: ", s.message()));
  }
  if (!files.empty() && mode != "lookup") {
    return UsageError("--lookup-file: is for --speculate lookup");
  }
  return absl::OkStatus();
}

void SpeculationFlags::ApplyTo(EngineOptions* options, bool skips) const {
  AskFor(mode, options);
  if (skips) options->guess_rows = kGuessRows;
}

absl::StatusOr<std::shared_ptr<Proposer>> SpeculationFlags::Make(
    const Engine& engine, const CompileFlags& compile,
    const CommonFlags& common) const {
  SpeculationOptions options;
  options.mode = mode;
  for (const std::string& file : files) {
    WEFT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(file));
    options.texts.push_back(std::move(text));
  }
  CompileFlags of_draft = compile;
  of_draft.lora.clear();  // they are the other model's
  of_draft.memory_budget = 0;
  WEFT_ASSIGN_OR_RETURN(options.draft, of_draft.ToOptions(common));
  options.draft.progress = MakeProgress(common, "packing the draft's weights");
  return MakeProposer(engine, options);
}

std::string GuessedText(const Usage& usage) {
  if (usage.drafted_tokens == 0) return "";
  return absl::StrFormat(", guessed right %d of %d", usage.accepted_tokens,
                         usage.drafted_tokens);
}

}  // namespace weft
