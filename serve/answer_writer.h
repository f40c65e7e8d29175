// Events of a generation to an answer: whole, or part by part for a stream.
// Joined, the parts of a stream are the whole answer.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "serve/json_stream.h"
#include "serve/openai_request.h"
#include "serve/openai_response.h"
#include "text/answer/reader.h"
#include "text/tokenizer.h"

namespace weft {

enum class AnswerKind { kCompletion, kChat };

// Not thread-safe.
class AnswerWriter {
 public:
  // `tokenizer` must outlive it. `readers`: one per choice; of completions they
  // read nothing. `echoes`: what stands before the text of each choice, or
  // nothing.
  AnswerWriter(AnswerKind kind, AnswerHead head, const GenerationFields& fields,
               const Tokenizer* tokenizer,
               std::vector<answer::AnswerReader> readers,
               std::vector<std::string> echoes);

  // Server-sent events of what is new; possibly none.
  std::string Part(int64_t choice, const Event& event);
  // The end of a stream: usage if asked for, and [DONE].
  std::string End(const Usage& usage) const;

  // The same for a whole answer: takes the event in.
  void Add(int64_t choice, const Event& event);
  // What was taken in, about as long as the answer.
  int64_t bytes() const { return bytes_; }
  void Whole(const Usage& usage, JsonStream* answer) const;

 private:
  struct Choice {
    Choice(answer::AnswerReader reader, std::string echo)
        : reader(std::move(reader)), characters(Characters(echo)) {
      answer.content = std::move(echo);
    }

    answer::AnswerReader reader;
    answer::Answer answer;  // its content begins with the echo
    int64_t characters;     // of the tokens so far, for text_offset
    // Of a whole answer: the elements of each list of log-probabilities, as
    // JSON with commas between.
    std::vector<std::string> logprobs;
    bool called = false;
    std::string finish;
    bool begun = false;
  };

  nlohmann::ordered_json Logprobs(absl::Span<const GeneratedToken> tokens,
                                  int64_t* characters) const;
  nlohmann::ordered_json WholeChoice(int64_t index) const;
  std::string Chunk(nlohmann::ordered_json choice) const;
  // What the event says; of completions all is content.
  std::vector<answer::AnswerEvent> Read(Choice* choice, const Event& event);
  std::string ChatPart(int64_t index, const Event& event);
  std::string CompletionPart(int64_t index, const Event& event);

  const AnswerKind kind_;
  const AnswerHead head_;
  const Tokenizer* tokenizer_;
  const bool logprobs_, stream_usage_;
  const int64_t top_;
  std::vector<Choice> choices_;
  int64_t bytes_ = 0;
};

}  // namespace weft
