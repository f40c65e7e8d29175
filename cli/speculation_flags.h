// The flags --speculate and --lookup-file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "runtime/api/engine.h"
#include "runtime/api/scheduler.h"
#include "runtime/generation/request.h"

namespace weft {

struct SpeculationFlags {
  explicit SpeculationFlags(const char* mode) : mode(mode) {}

  std::string mode;
  std::vector<std::string> files;

  void AddTo(CLI::App& command);
  // Errors of use, before a model is loaded.
  absl::Status Check() const;
  // `skips`: rows are wanted also without anybody who guesses, for constraints
  // that leave one token alone.
  void ApplyTo(EngineOptions* options, bool skips = false) const;
  // Reads the files, or loads the draft model.
  absl::StatusOr<std::shared_ptr<Proposer>> Make(
      const Engine& engine, const CompileFlags& compile,
      const CommonFlags& common) const;
};

// ", guessed 12 of 34" for a line about a text; empty where nothing was.
std::string GuessedText(const Usage& usage);

}  // namespace weft
