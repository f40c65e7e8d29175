#include "serve/dialect.h"

#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"

namespace weft {

void PartReader::Add(answer::AnswerEvent told, std::vector<AnswerPart>* parts) {
  using Kind = AnswerPart::Kind;
  using answer::AnswerEvent;
  const bool in_parts = calls_ == Calls::kInParts;
  switch (told.kind) {
    case AnswerEvent::kReasoning:
      parts->push_back({Kind::kReasoning, std::move(told.text)});
      break;
    case AnswerEvent::kContent:
      parts->push_back({Kind::kText, std::move(told.text)});
      break;
    case AnswerEvent::kCallBegin:
      call_ = {std::move(told.id), std::move(told.text), "", false};
      if (in_parts) parts->push_back({Kind::kCall, "", call_});
      break;
    case AnswerEvent::kCallArguments:
      call_.arguments += told.text;
      if (in_parts) parts->push_back({Kind::kArguments, std::move(told.text)});
      break;
    case AnswerEvent::kCallEnd: {
      const bool broken = told.end == AnswerEvent::kBroken;
      call_.whole = told.end == AnswerEvent::kWhole;
      called_ |= call_.whole;
      if (!in_parts && !broken) {
        parts->push_back({Kind::kCall, "", call_});
        parts->push_back({Kind::kArguments, call_.arguments});
      }
      if (in_parts || !broken) parts->push_back({Kind::kCallEnd, "", call_});
      if (broken) parts->push_back({Kind::kText, std::move(told.text)});
      break;
    }
  }
}

std::vector<AnswerPart> PartReader::Read(const Event& event) {
  std::vector<AnswerPart> parts;
  for (answer::AnswerEvent& told : reader_.Push(event.text)) {
    Add(std::move(told), &parts);
  }
  if (!event.finished) return parts;
  for (answer::AnswerEvent& told : reader_.Finish(WasCut(event.reason))) {
    Add(std::move(told), &parts);
  }
  return parts;
}

std::string NamedEvent(const nlohmann::ordered_json& event) {
  return absl::StrCat("event: ", event["type"].get<std::string>(),
                      "\ndata: ", JsonText(event), "\n\n");
}

}  // namespace weft
