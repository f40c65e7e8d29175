#include "serve/openai_response.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "serve/json_fields.h"
#include "text/utf8.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// JSON has no infinity; this is what OpenAI writes instead.
double Finite(double logprob) { return std::max(logprob, -9999.0); }

// Bytes that are no text by themselves are written as \xNN, so that two tokens
// with different bytes stay different.
std::string TokenText(absl::string_view bytes) {
  if (ValidUtf8Prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) {
    absl::StrAppend(&text,
                    absl::StrFormat("\\x%02x", static_cast<unsigned char>(c)));
  }
  return text;
}

json ChatToken(const Tokenizer& tokenizer, int32_t id, double logprob) {
  const absl::string_view bytes = tokenizer.TokenToBytes(id);
  json list = json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", std::string(bytes)},
          {"logprob", Finite(logprob)},
          {"bytes", std::move(list)}};
}

json FinishJson(const absl::optional<std::string>& finish) {
  return finish.has_value() ? json(*finish) : json(nullptr);
}

}  // namespace

int64_t Characters(absl::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
}

bool WasCut(FinishReason reason) {
  return reason == FinishReason::kLength || reason == FinishReason::kContext ||
         reason == FinishReason::kDeadline;
}

const char* FinishName(FinishReason reason, bool called_tools) {
  return WasCut(reason) ? "length" : called_tools ? "tool_calls" : "stop";
}

json UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", usage.accepted_tokens},
            {"rejected_prediction_tokens",
             usage.drafted_tokens - usage.accepted_tokens}}}};
}

json ChatLogprobs(const Tokenizer& tokenizer,
                  absl::Span<const GeneratedToken> tokens, int64_t top) {
  json content = json::array();
  for (const GeneratedToken& token : tokens) {
    json entry = ChatToken(tokenizer, token.id, token.logprob);
    json others = json::array();
    for (const TokenLogprob& other : token.top) {
      if (static_cast<int64_t>(others.size()) == top) break;
      others.push_back(ChatToken(tokenizer, other.token, other.logprob));
    }
    entry["top_logprobs"] = std::move(others);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json CompletionLogprobs(const Tokenizer& tokenizer,
                        absl::Span<const GeneratedToken> tokens, int64_t top,
                        int64_t* characters) {
  json texts = json::array(), logprobs = json::array(), tops = json::array(),
       offsets = json::array();
  for (const GeneratedToken& token : tokens) {
    const absl::string_view text = tokenizer.TokenToBytes(token.id);
    texts.push_back(TokenText(text));
    logprobs.push_back(Finite(token.logprob));
    json others = json::object();
    for (const TokenLogprob& other : token.top) {
      if (static_cast<int64_t>(others.size()) == top) break;
      // Where two ids print the same the more probable one stays.
      others.emplace(TokenText(tokenizer.TokenToBytes(other.token)),
                     Finite(other.logprob));
    }
    // What was there is told, too; of a text it is nearly always among them.
    if (top > 0) others.emplace(TokenText(text), Finite(token.logprob));
    tops.push_back(std::move(others));
    offsets.push_back(*characters);
    // Control tokens are in no text.
    if (!tokenizer.IsSpecial(token.id)) *characters += Characters(text);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

json ProgressJson(const Usage& usage, absl::Time since) {
  return {{"total", usage.prompt_tokens},
          {"cache", usage.cached_tokens},
          {"processed", usage.processed_tokens},
          {"time_ms", absl::ToInt64Milliseconds(absl::Now() - since)}};
}

json PromptLogprob(const Tokenizer& tokenizer, const GeneratedToken& token) {
  json entries = json::object();
  const auto add = [&](int32_t id, double logprob, json rank) {
    entries[absl::StrCat(id)] = {
        {"logprob", Finite(logprob)},
        {"rank", std::move(rank)},
        {"decoded_token", TokenText(tokenizer.TokenToBytes(id))}};
  };
  add(token.id, token.logprob, nullptr);
  int rank = 0;
  for (const TokenLogprob& other : token.top) {
    add(other.token, other.logprob, ++rank);
  }
  return entries;
}

json CompletionChoice(int64_t index, absl::string_view text, json logprobs,
                      absl::optional<std::string> finish) {
  return {{"index", index},
          {"text", std::string(text)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", FinishJson(finish)}};
}

json DeltaOf(const answer::AnswerEvent& event) {
  using answer::AnswerEvent;
  switch (event.kind) {
    case AnswerEvent::kReasoning:
      return {{"reasoning_content", event.text}};
    case AnswerEvent::kContent:
      return {{"content", event.text}};
    case AnswerEvent::kCallBegin:
      return {{"tool_calls",
               json::array({{{"index", event.call},
                             {"id", event.id},
                             {"type", "function"},
                             {"function",
                              {{"name", event.text}, {"arguments", ""}}}}})}};
    case AnswerEvent::kCallArguments:
      return {{"tool_calls",
               json::array({{{"index", event.call},
                             {"function", {{"arguments", event.text}}}}})}};
    case AnswerEvent::kCallEnd:
      return event.end == AnswerEvent::kBroken ? json{{"content", event.text}}
                                               : json(nullptr);
  }
  return nullptr;
}

json ChatChoice(int64_t index, const answer::Answer& answer, json logprobs,
                const std::string& finish) {
  json message = {
      {"role", "assistant"}, {"content", answer.content}, {"refusal", nullptr}};
  if (!answer.reasoning.empty()) {
    message["reasoning_content"] = answer.reasoning;
  }
  if (!answer.calls.empty() && answer.content.empty()) {
    message["content"] = nullptr;
  }
  for (const answer::Answer::Call& call : answer.calls) {
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return {{"index", index},
          {"message", std::move(message)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", finish}};
}

json ChatDelta(int64_t index, json delta, json logprobs,
               absl::optional<std::string> finish) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", FinishJson(finish)}};
}

json Answer(const AnswerHead& head, const char* object, json choices) {
  json answer = {{"id", head.id},
                 {"object", object},
                 {"created", head.created},
                 {"model", head.model},
                 {"choices", std::move(choices)}};
  if (!head.schema_dropped.empty()) {
    answer["schema_dropped"] = head.schema_dropped;
  }
  return answer;
}

std::string ServerSentEvent(const json& json) {
  return absl::StrCat("data: ", JsonText(json), "\n\n");
}

}  // namespace weft
