// Answers in OpenAI's form: completions and chats.
#pragma once

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "serve/answer_form.h"
#include "serve/openai_request.h"
#include "serve/openai_response.h"
#include "serve/tool_calls.h"
#include "text/tokenizer.h"

namespace weft {

enum class AnswerKind { kCompletion, kChat };

class AnswerWriter : public AnswerForm {
 public:
  // `tokenizer` must outlive it. `readers`: one per choice. `echoes`: what
  // stands before the text of each choice, or nothing.
  AnswerWriter(AnswerKind kind, AnswerHead head, const GenerationFields& fields,
               const Tokenizer* tokenizer, std::vector<ToolCallReader> readers,
               std::vector<std::string> echoes);

  // Server-sent events of what is new; possibly none.
  std::string Part(int64_t choice, const Event& event) override;
  // The end of a stream: usage if asked for, and [DONE].
  std::string End(const Usage& usage) override;
  std::string Failure(const ApiError& error) override;

  void Add(int64_t choice, const Event& event) override;
  int64_t bytes() const override { return bytes_; }
  void Whole(const Usage& usage, JsonStream* answer) override;

 private:
  struct Choice {
    Choice(ToolCallReader reader, std::string echo, bool tells_prompt)
        : reader(std::move(reader)),
          text(std::move(echo)),
          characters(tells_prompt ? 0 : Characters(text)) {}

    ToolCallReader reader;
    std::string text;    // all that is said, echo included
    int64_t characters;  // of the tokens so far, for text_offset
    // Of a whole answer: the elements of each list of log-probabilities, as
    // JSON with commas between.
    std::vector<std::string> logprobs;
    std::string prompt_logprobs;  // the same
    bool told_prompt = false;     // its first token
    std::vector<ToolCall> calls;
    std::string finish;
    bool begun = false;
  };

  nlohmann::ordered_json Logprobs(const Event& event, Choice* choice) const;
  std::string Progress(const Event& event) const;
  nlohmann::ordered_json WholeChoice(int64_t index) const;
  std::string Chunk(nlohmann::ordered_json choice) const;
  std::string ChatPart(int64_t index, const Event& event);
  std::string CompletionPart(int64_t index, const Event& event);

  const AnswerKind kind_;
  const AnswerHead head_;
  const Tokenizer* tokenizer_;
  const bool logprobs_, stream_usage_, progress_;
  const bool echoes_;           // texts, and log-probabilities if any
  const bool prompt_logprobs_;  // by themselves
  const int64_t top_;
  const absl::Time begun_ = absl::Now();
  std::vector<Choice> choices_;
  int64_t bytes_ = 0;
};

}  // namespace weft
