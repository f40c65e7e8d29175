#include "serve/text_routes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/completions.h"
#include "serve/json_fields.h"
#include "serve/openai_request.h"
#include "serve/prompts.h"

namespace weft {

void AnswerTokenize(const ServedModel& model, HttpCall* call) {
  absl::StatusOr<TokenizeRequest> request = ParseTokenizeRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  const Tokenizer& tokenizer = model.tokenizer();
  EncodeOptions options = WhileClientIsThere(call);
  options.add_special = request->add_special;
  options.parse_special = request->parse_special;
  absl::StatusOr<std::vector<int32_t>> ids =
      tokenizer.Encode(request->content, options);
  if (!ids.ok()) return call->Answer(ToApiError(ids.status()));
  // Some thirty bytes a token: written as they are made.
  call->AnswerJson([&tokenizer, ids = *std::move(ids),
                    with_pieces = request->with_pieces](JsonStream* answer) {
    answer->Open('{');
    answer->Key("tokens");
    answer->Open('[');
    for (const int32_t id : ids) {
      if (answer->broken()) return;
      answer->Raw(
          with_pieces
              ? absl::StrCat("{\"id\":", id, ",\"piece\":",
                             JsonText(std::string(tokenizer.TokenToBytes(id))),
                             "}")
              : absl::StrCat(id));
    }
    answer->Close();
    answer->Close();
  });
}

void AnswerDetokenize(const ServedModel& model, const ServiceLimits& limits,
                      HttpCall* call) {
  absl::StatusOr<DetokenizeRequest> request =
      ParseDetokenizeRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  const Tokenizer& tokenizer = model.tokenizer();
  int64_t bytes = 0;
  for (const int32_t id : request->tokens) {
    if (!tokenizer.InRange(id)) continue;  // Decode tells it
    bytes += static_cast<int64_t>(tokenizer.TokenToBytes(id).size());
  }
  if (bytes > limits.answer_bytes) {
    return call->Answer(ToApiError(FieldError(
        "tokens", absl::StrCat("are ", bytes, " bytes of text: at most ",
                               limits.answer_bytes, " (--max-answer-bytes)"))));
  }
  absl::StatusOr<std::string> text = tokenizer.Decode(request->tokens, {});
  if (!text.ok()) {
    return call->Answer(
        ToApiError(FieldError("tokens", text.status().message())));
  }
  call->AnswerJson([text = *std::move(text)](JsonStream* answer) {
    answer->Open('{');
    answer->Key("content");
    answer->Text(text);
    answer->Close();
  });
}

void AnswerApplyTemplate(const ServedModel& model, HttpCall* call) {
  absl::StatusOr<ChatCompletionRequest> request =
      ParseTemplateRequest(call->body);
  if (!request.ok()) return call->Answer(ToApiError(request.status()));
  absl::StatusOr<std::vector<TextSegment>> segments =
      RenderChat(model, *request);
  if (!segments.ok()) return call->Answer(ToApiError(segments.status()));
  call->AnswerJson([prompt = JoinSegments(*segments)](JsonStream* answer) {
    answer->Open('{');
    answer->Key("prompt");
    answer->Text(prompt);
    answer->Close();
  });
}

}  // namespace weft
