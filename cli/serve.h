// The model of weft serve, for commands that do with it what the server does.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/speculation_flags.h"
#include "runtime/api/scheduler.h"
#include "runtime/generation/constraint_cache.h"
#include "serve/served_model.h"

namespace weft {

struct ServedModelFlags {
  ServedModelFlags() { scheduler.prompt_logprob_rows = 16; }

  std::string model, model_name;
  // Of a folder: what only others can obey is told and left, each line once
  // for each model, however often that is loaded. Null: there is one.
  std::shared_ptr<std::set<std::string>> told;
  bool one_of_several() const { return told != nullptr; }
  int slots = 4;
  int64_t client_queue = 0;  // 0: three quarters
  int64_t kv_tokens = 0;     // 0: a whole context for each slot
  int checkpoints = -1;      // two for each slot
  int64_t max_grammar_bytes = ConstraintCache::Limits().alive_bytes;
  SchedulerOptions scheduler;
  SpeculationFlags speculation{"off"};
  TextFlags text;
  ChatTemplateFlag chat_template;
  CompileFlags compile;
};

// `source`: of the chat template (ChatTemplateFlag::Source).
absl::StatusOr<ServedModel> LoadServedModel(const ServedModelFlags& flags,
                                            const std::string& source,
                                            const CommonFlags& common);

}  // namespace weft
