// Fuzz target: any body either is a request or gives an error that is JSON
// itself; and any text of a model, cut anywhere, gives the same answer as
// whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "serve/api_error.h"
#include "serve/json_fields.h"
#include "serve/openai_request.h"
#include "serve/tool_calls.h"

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

void CheckToolCalls(weft::ToolCustom custom, absl::string_view text) {
  const auto tools = nlohmann::ordered_json::parse(
      R"([{"function": {"name": "f"}}, {"function": {"name": "g"}}])");
  weft::ToolCallReader whole(custom, tools, "x"), cut(custom, tools, "x");
  std::string a = whole.Push(text), b;
  for (size_t i = 0; i < text.size(); i += 3) b += cut.Push(text.substr(i, 3));
  const weft::ParsedAnswer rest_a = whole.Finish(), rest_b = cut.Finish();
  if (a + rest_a.content != b + rest_b.content ||
      rest_a.calls.size() != rest_b.calls.size()) {
    std::abort();
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
  CheckToolCalls(weft::ToolCustom::kTagged, body);
  CheckToolCalls(weft::ToolCustom::kBare, body);
  return 0;
}
