// From the tokens of one text to its events: whole characters, nothing of a
// stop string, and each token with the text that it begins.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/generation/request.h"
#include "runtime/generation/stop_strings.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace weft {

class ChoiceOutput {
 public:
  // `tokenizer` must outlive this.
  ChoiceOutput(const Tokenizer& tokenizer, const Request& request);

  // Takes the next token and adds to `event` the text that is now certain and
  // the tokens that begin in it. Returns which stop string ended the text, or
  // -1. `look` is false where none may.
  absl::StatusOr<int> Push(GeneratedToken token, bool look, Event* event);

  // At any other end: adds what is left.
  void Finish(Event* event);

 private:
  struct Held {
    GeneratedToken token;
    int64_t begin;  // of its text, in bytes of the whole
  };

  // The tokens that begin before `end`, and those at it if `inclusive`.
  void TellTokens(int64_t end, bool inclusive, Event* event);

  const Tokenizer& tokenizer_;
  const std::vector<int32_t> shown_special_;
  StreamDecoder decoder_;
  StopStrings stops_;
  std::string piece_;
  std::vector<Held> held_;  // oldest first
  int64_t decoded_ = 0;     // bytes, held back or not
};

}  // namespace weft
