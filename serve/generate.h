// One HTTP request that generates, from its prompts to its answer: what all
// dialects share. A dialect makes a Job of its request and an AnswerForm for
// its answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/constraint_cache.h"
#include "serve/answer_form.h"
#include "serve/field_names.h"
#include "serve/http_server.h"
#include "serve/served_model.h"
#include "text/answer/reader.h"

namespace weft {

struct Job {
  GenerationFields fields;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::string> echoes;  // per prompt, or none
  // How answers are read; of texts that are no chats, not at all.
  answer::AnswerForms forms;
  nlohmann::ordered_json tools;  // offered ones, or null
  std::string prompt_end;        // may have opened reasoning
  bool separate_reasoning = true;
  std::vector<int32_t> marker_tokens;  // that the reader must see
  bool forces_call = false;
  std::string forced_tool;      // empty: any
  std::string reasoning_close;  // before a forced call; empty: there is none
  bool one_call = false;        // more are left out of the answer
  std::vector<std::string> dropped;  // of schemas: what is not kept
  // How errors that are found later call the request's fields.
  FieldNames names;

  int64_t choices() const {
    return static_cast<int64_t>(prompts.size()) * fields.choices;
  }
  // Where choice `index` of the answer has its prompt.
  size_t PromptOf(int64_t index) const { return index / fields.choices; }
};

// Whether what may be written depends on the tools: a call is wanted, must fit
// its schema where one comes, or may stand in place of JSON.
bool ToolsConstrain(const Job& job);

uint64_t Random64();
// "PREFIX" and 24 digits that no other has.
std::string RandomId(const char* prefix);

// The readers of a job's choices; `id` begins the ids of calls.
std::vector<answer::AnswerReader> ReadersFor(const Job& job,
                                             const std::string& id);

// The scheduler's request for a prompt of a job which leaves nothing to the
// server: seed, length, overflow. Errors name the field. What of schemas is
// not kept is added to `asker.dropped`, if it is given.
absl::StatusOr<Request> MakeRequest(const ServedModel& model, const Job& job,
                                    const std::vector<int32_t>& prompt,
                                    const ConstraintAsker& asker = {});

// Returns when the answer is there or, for a stream, has begun: its headers go
// out at once, and the rest is written while the response is sent. A client
// that goes takes its request with it. `model` must outlive the call's
// response.
using MakeForm = std::function<std::unique_ptr<AnswerForm>(const Job& job)>;
void RunJob(const ServedModel& model, const ServiceLimits& limits, Job job,
            const MakeForm& make_form, HttpCall* call);

// Why an encoder is not asked for text.
ApiError WritesNoText(const ServedModel& model);

}  // namespace weft
