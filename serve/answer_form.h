// An answer as one of the dialects has it on the wire, made of a generation's
// events: whole, or part by part for a stream. Joined, the parts of a stream
// are the whole answer.
//
// One object is one answer; not thread-safe. Either Begin, Part and End are
// called, or Add and Whole.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/generation/request.h"
#include "serve/api_error.h"
#include "serve/json_stream.h"

namespace weft {

class AnswerForm {
 public:
  virtual ~AnswerForm() = default;

  // Of a stream's body.
  virtual const char* stream_type() const { return "text/event-stream"; }
  // What goes out before there is any event.
  virtual std::string Begin() { return ""; }
  // What is new, as it is sent; possibly nothing.
  virtual std::string Part(int64_t choice, const Event& event) = 0;
  virtual std::string End(const Usage& usage) = 0;
  // The last words of a stream that failed.
  virtual std::string Failure(const ApiError& error) = 0;
  // What is sent when there has been nothing to say for a while: clients give
  // up a connection that is silent for minutes.
  virtual std::string StillHere() { return ": still here\n\n"; }

  // Takes the event in. `bytes` is what was taken in, about as long as the
  // answer.
  virtual void Add(int64_t choice, const Event& event) = 0;
  virtual int64_t bytes() const = 0;
  // May be called twice (HttpCall::AnswerJson).
  virtual void Whole(const Usage& usage, JsonStream* answer) = 0;
};

}  // namespace weft
