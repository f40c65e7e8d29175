// weft bench --speculate: texts with and without guessed tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/speculation_flags.h"
#include "nlohmann/json.hpp"
#include "runtime/api/engine.h"

namespace weft {

struct SpeculationBench {
  int64_t prompt = 0, generate = 0, batch = 0, repeat = 0;
  const SpeculationFlags* flags = nullptr;
};

// Whether `mode` is "right:P": guesses of somebody who knows the text, of which
// each is right with probability P. For measurements alone.
bool IsKnownRate(const std::string& mode);

// `batch` texts of `generate` greedy tokens each, side by side, behind prompts
// of random tokens that are in the cache already: tokens per second of one
// scheduler without guesses and with them, in turns, and what came of them.
absl::StatusOr<nlohmann::ordered_json> BenchSpeculation(
    std::unique_ptr<Engine> engine, const SpeculationBench& bench,
    const CompileFlags& compile, const CommonFlags& common);

}  // namespace weft
