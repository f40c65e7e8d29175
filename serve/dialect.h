// What the files of other dialects share: they write their requests as
// OpenAI's, whose reader checks every field, and read answers in parts.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "runtime/generation/request.h"
#include "text/answer/reader.h"

namespace weft {

// A field by its name in a dialect, with the path to it for messages, and in
// OpenAI's.
struct FieldName {
  const char* theirs;
  const char* ours;
};

// What weft adds to requests; it has one name in all dialects.
constexpr FieldName kOwnFields[] = {
    {"seed", "seed"},
    {"cache_prompt", "cache_prompt"},
    {"context_overflow", "context_overflow"},
    {"id_slot", "id_slot"},
    {"speculate", "speculate"},
    {"lora", "lora"},
};

// Copies the fields that are there, under their new names.
void CopyFields(const nlohmann::ordered_json& from,
                absl::Span<const FieldName> names, nlohmann::ordered_json* to);

// An error that names a field by our name, by theirs: `path` stands before it.
absl::Status InTheirNames(const absl::Status& status,
                          absl::Span<const FieldName> names,
                          const std::string& path = "");

// What is new in an answer, as it was read.
struct AnswerPart {
  enum class Kind {
    kText,
    kReasoning,
    kCall,       // a call begins: `call` has its id and name
    kArguments,  // of it, more of `text`
    kCallEnd,
  };
  Kind kind;
  std::string text;
  answer::Answer::Call call = {};
};

// Reads one choice of one answer.
class PartReader {
 public:
  explicit PartReader(answer::AnswerReader reader)
      : reader_(std::move(reader)) {}

  // What an event brings, in order.
  std::vector<AnswerPart> Read(const Event& event);
  bool called() const { return called_; }

 private:
  answer::AnswerReader reader_;
  bool called_ = false;
};

// "event: TYPE", as the streams of some dialects have it, and the object.
std::string NamedEvent(const nlohmann::ordered_json& event);

}  // namespace weft
