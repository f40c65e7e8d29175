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
#include "text/answer/reader.h"
#include "text/tokenizer.h"

namespace weft {

enum class AnswerKind { kCompletion, kChat };

class AnswerWriter : public AnswerForm {
 public:
  // `tokenizer` must outlive it. `readers`: one per choice; of completions they
  // read nothing. `echoes`: what stands before the text of each choice, or
  // nothing.
  AnswerWriter(AnswerKind kind, AnswerHead head, const GenerationFields& fields,
               const Tokenizer* tokenizer,
               std::vector<answer::AnswerReader> readers,
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
    Choice(answer::AnswerReader reader, std::string echo, bool tells_prompt)
        : reader(std::move(reader)),
          characters(tells_prompt ? 0 : Characters(echo)) {
      answer.content = std::move(echo);
    }

    answer::AnswerReader reader;
    answer::Answer answer;  // its content begins with the echo
    int64_t characters;     // of the tokens so far, for text_offset
    // Of a whole answer: the elements of each list of log-probabilities, as
    // JSON with commas between.
    std::vector<std::string> logprobs;
    std::string prompt_logprobs;  // the same
    bool told_prompt = false;     // its first token
    bool called = false;
    std::string finish;
    bool begun = false;
  };

  nlohmann::ordered_json Logprobs(const Event& event, Choice* choice) const;
  std::string Progress(const Event& event) const;
  nlohmann::ordered_json WholeChoice(int64_t index) const;
  std::string Chunk(nlohmann::ordered_json choice) const;
  // What the event says; of completions all is content.
  std::vector<answer::AnswerEvent> Read(Choice* choice, const Event& event);
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
