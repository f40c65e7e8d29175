#include "serve/dialect.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "serve/json_fields.h"

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
  for (const FieldName& name : names) {
    if (param != name.ours) continue;
    absl::string_view message = status.message();
    absl::ConsumePrefix(&message, absl::StrCat("'", param, "': "));
    return FieldError(absl::StrCat(path, name.theirs), message);
  }
  return status;
}

std::vector<AnswerPart> PartReader::Read(const Event& event) {
  std::vector<AnswerPart> parts;
  std::string text = reader_.Push(event.text);
  std::vector<ToolCall> calls;
  if (event.finished) {
    ParsedAnswer rest = reader_.Finish();
    text += rest.content;
    calls = std::move(rest.calls);
  }
  if (!text.empty())
    parts.push_back({AnswerPart::Kind::kText, std::move(text)});
  for (ToolCall& call : calls) {
    called_ = true;
    std::string arguments = std::move(call.arguments);
    parts.push_back({AnswerPart::Kind::kCall, "", std::move(call)});
    parts.push_back({AnswerPart::Kind::kArguments, std::move(arguments)});
    parts.push_back({AnswerPart::Kind::kCallEnd, ""});
  }
  return parts;
}

std::string NamedEvent(const json& event) {
  return absl::StrCat("event: ", event["type"].get<std::string>(),
                      "\ndata: ", JsonText(event), "\n\n");
}

}  // namespace weft
