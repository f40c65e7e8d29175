// Fuzz target: any body either is a request or gives an error that is JSON
// itself; and any text of a model, cut anywhere, gives the same answer as
// whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "serve/api_error.h"
#include "serve/json_fields.h"
#include "serve/openai_request.h"
#include "text/answer/reader.h"

namespace {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  const weft::ApiError error = weft::ToApiError(status);
  const std::string text = weft::JsonText(weft::ErrorJson(error));
  if (error.status != 400 || error.message.empty() ||
      !weft::ParseJson(text).ok()) {
    std::abort();
  }
}

std::string Read(const weft::answer::CallForm& form, absl::string_view text,
                 size_t step) {
  weft::answer::AnswerForms forms = weft::answer::PlainForms();
  forms.call = form;
  weft::answer::ReaderOptions options;
  options.tools = nlohmann::ordered_json::parse(
      R"([{"function": {"name": "f"}}, {"function": {"name": "g"}}])");
  weft::answer::AnswerReader reader(forms, options);
  std::string told;
  int last = -1;
  const auto add = [&](const std::vector<weft::answer::AnswerEvent>& events) {
    for (const auto& event : events) {
      if (event.kind != last) told += static_cast<char>('0' + event.kind);
      last = event.kind;
      told += event.text;
    }
  };
  for (size_t i = 0; i < text.size(); i += step) {
    add(reader.Push(text.substr(i, step)));
  }
  add(reader.Finish(false));
  return told;
}

void CheckAnswers(absl::string_view text) {
  for (const weft::answer::CallForm& form : weft::answer::CallForms()) {
    if (Read(form, text, text.size() + 1) != Read(form, text, 3)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view body(reinterpret_cast<const char*>(data), size);
  Check(weft::ParseCompletionRequest(body, {}).status());
  Check(weft::ParseChatCompletionRequest(body, {}).status());
  Check(weft::ParseTemplateRequest(body).status());
  Check(weft::ParseEmbeddingsRequest(body, {}).status());
  Check(weft::ParseTokenizeRequest(body).status());
  Check(weft::ParseDetokenizeRequest(body).status());
  CheckAnswers(body);
  return 0;
}
