// What the files of other dialects share: they write their requests as
// OpenAI's, whose reader checks every field, and read answers in parts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "serve/field_names.h"
#include "text/answer/reader.h"

namespace weft {

// What is new in an answer, as it was read.
struct AnswerPart {
  enum class Kind {
    kText,
    kReasoning,
    kCall,       // a call begins: `call` has its id and name
    kArguments,  // of it, more of `text`
    kCallEnd,    // `call` is all of it
  };
  Kind kind;
  std::string text;
  answer::Answer::Call call = {};
};

// Reads one choice of one answer.
class PartReader {
 public:
  // Calls may come in parts, while they are written: then one may turn out to
  // be none, which is told as its end (`call.whole` is false) and as text. Else
  // they come when they have ended, and such a one is text alone.
  enum class Calls { kInParts, kAtTheirEnd };
  PartReader(answer::AnswerReader reader, Calls calls)
      : reader_(std::move(reader)), calls_(calls) {}

  // What an event brings, in order.
  std::vector<AnswerPart> Read(const Event& event);
  // Whether a whole call came: one that was cut off is none to be made.
  bool called() const { return called_; }

 private:
  void Add(answer::AnswerEvent told, std::vector<AnswerPart>* parts);

  answer::AnswerReader reader_;
  const Calls calls_;
  answer::Answer::Call call_;  // that is read
  bool called_ = false;
};

// "event: TYPE", as the streams of some dialects have it, and the object.
std::string NamedEvent(const nlohmann::ordered_json& event);

}  // namespace weft
