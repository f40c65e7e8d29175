// What a scheduler may be told when it is created (runtime/api/scheduler.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/speculation/proposer.h"

namespace weft {

struct SchedulerOptions {
  // Prompt tokens in one step while texts are being written, all prompts
  // together: what bounds the pause that a long prompt makes in them. At least
  // 1; more than a step of the plan takes is as many as it takes.
  int64_t prefill_tokens = 64;
  // The same while no text is being written. 0: as many as a step takes.
  int64_t prefill_tokens_alone = 0;
  // Requests that may wait; more are refused.
  int64_t queue_limit = 1024;
  // Of them, how many may be of one client (Request::client), so that there is
  // room for others; of client 0 as many as there is room for.
  int64_t client_queue_limit = 768;
  // Rows of logits of one step for log-probabilities of prompts
  // (Request::prompt_logprobs), which run in parts of so many tokens. 0: they
  // are refused.
  int64_t prompt_logprob_rows = 0;
  // Keep pages of prompts and texts for later requests while memory is free.
  bool prefix_cache = true;
  // Who guesses tokens of texts that allow it (Request::speculate), to be tried
  // several in a step, wherever that seems to be faster; null: nobody. Changes
  // no bit. It is this scheduler's alone, and wants EngineOptions::guess_rows,
  // which also lets texts skip ahead where a constraint leaves one token only.
  std::shared_ptr<Proposer> proposer;
  // Guess as much as there are rows for, faster or not: for tests.
  bool always_guess = false;
  // A folder of files with pages of prompts and texts, which stay when the
  // program ends (prompt_files.h); empty: none. Of requests in no scope alone.
  std::string cache_folder;
  int64_t cache_bytes = int64_t{8} << 30;  // of the files, at most
  // Told, in one line, of what the owner should know: requests that end since
  // something is broken, and once of logits that are no numbers. Called as
  // callbacks are.
  std::function<void(const std::string& line)> log;
};

}  // namespace weft
