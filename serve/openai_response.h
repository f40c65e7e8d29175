// Answers in OpenAI's JSON. Plain functions of what was generated: nothing here
// knows of connections or of the scheduler's work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "text/answer/reader.h"
#include "text/tokenizer.h"

namespace weft {

// What all parts of one answer repeat.
struct AnswerHead {
  std::string id;  // "cmpl-..." or "chatcmpl-..."
  int64_t created = 0;
  std::string model;
  // Of a schema: what is not kept. Answers have it where there is some.
  std::vector<std::string> schema_dropped;
};

// Whether the model would have gone on.
bool WasCut(FinishReason reason);
// "stop", "length" or "tool_calls": these where a whole call came.
const char* FinishName(FinishReason reason, bool called_tools);

nlohmann::ordered_json UsageJson(const Usage& usage);

// Chat: {"content": [{token, logprob, bytes, top_logprobs}, ...]}.
nlohmann::ordered_json ChatLogprobs(const Tokenizer& tokenizer,
                                    absl::Span<const GeneratedToken> tokens,
                                    int64_t top);

// Completions: lists of equal length. `*characters` is how many the tokens
// before had, the first text_offset; it grows.
nlohmann::ordered_json CompletionLogprobs(
    const Tokenizer& tokenizer, absl::Span<const GeneratedToken> tokens,
    int64_t top, int64_t* characters);

// Of a token of the prompt: by id, it and the most probable ones.
nlohmann::ordered_json PromptLogprob(const Tokenizer& tokenizer,
                                     const GeneratedToken& token);

// How far the reading of a prompt is, `since` it was asked for.
nlohmann::ordered_json ProgressJson(const Usage& usage, absl::Time since);

// Characters that begin in these bytes.
int64_t Characters(absl::string_view bytes);

// One choice of an answer; `logprobs` may be null.
nlohmann::ordered_json CompletionChoice(int64_t index, absl::string_view text,
                                        nlohmann::ordered_json logprobs,
                                        absl::optional<std::string> finish);
nlohmann::ordered_json ChatChoice(int64_t index, const answer::Answer& answer,
                                  nlohmann::ordered_json logprobs,
                                  const std::string& finish);
// Of a stream: `delta` is an object of what is new.
nlohmann::ordered_json ChatDelta(int64_t index, nlohmann::ordered_json delta,
                                 nlohmann::ordered_json logprobs,
                                 absl::optional<std::string> finish);
// What a stream tells of one event; null: nothing. A call that is none after
// all has been told as one; what is whole of it is told as content, as in a
// whole answer.
nlohmann::ordered_json DeltaOf(const answer::AnswerEvent& event);

// The whole of an answer, or a part of a stream (`object` says which).
nlohmann::ordered_json Answer(const AnswerHead& head, const char* object,
                              nlohmann::ordered_json choices);

// "data: ...\n\n".
std::string ServerSentEvent(const nlohmann::ordered_json& json);

}  // namespace weft
