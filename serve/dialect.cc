#include "serve/dialect.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "serve/json_fields.h"
#include "serve/openai_response.h"

namespace weft {

using json = nlohmann::ordered_json;

void CopyFields(const json& from, absl::Span<const FieldName> names, json* to) {
  if (!from.is_object()) return;
  for (const FieldName& name : names) {
    const auto found = from.find(name.theirs);
    if (found != from.end() && !found->is_null()) (*to)[name.ours] = *found;
  }
}

absl::Status InTheirNames(const absl::Status& status,
                          absl::Span<const FieldName> names,
                          const std::string& path) {
  const std::string param = ErrorParam(status);
  std::vector<FieldName> all(names.begin(), names.end());
  all.insert(all.end(), std::begin(kOwnFields), std::end(kOwnFields));
  for (const FieldName& name : all) {
    if (param != name.ours) continue;
    absl::string_view message = status.message();
    absl::ConsumePrefix(&message, absl::StrCat("'", param, "': "));
    return FieldError(absl::StrCat(path, name.theirs), message);
  }
  return status;
}

std::vector<AnswerPart> PartReader::Read(const Event& event) {
  using Kind = AnswerPart::Kind;
  std::vector<AnswerPart> parts;
  const auto add = [&](std::vector<answer::AnswerEvent> told) {
    for (answer::AnswerEvent& each : told) {
      switch (each.kind) {
        case answer::AnswerEvent::kReasoning:
          parts.push_back({Kind::kReasoning, std::move(each.text)});
          break;
        case answer::AnswerEvent::kContent:
          parts.push_back({Kind::kText, std::move(each.text)});
          break;
        case answer::AnswerEvent::kCallBegin:
          called_ = true;
          parts.push_back({Kind::kCall, ""});
          parts.back().call.id = std::move(each.id);
          parts.back().call.name = std::move(each.text);
          break;
        case answer::AnswerEvent::kCallArguments:
          parts.push_back({Kind::kArguments, std::move(each.text)});
          break;
        case answer::AnswerEvent::kCallEnd:
          parts.push_back({Kind::kCallEnd, ""});
          break;
      }
    }
  };
  add(reader_.Push(event.text));
  if (event.finished) {
    add(reader_.Finish(FinishName(event.reason, false) ==
                       absl::string_view("length")));
  }
  return parts;
}

std::string NamedEvent(const json& event) {
  return absl::StrCat("event: ", event["type"].get<std::string>(),
                      "\ndata: ", JsonText(event), "\n\n");
}

}  // namespace weft
