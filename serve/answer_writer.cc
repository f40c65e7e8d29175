#include "serve/answer_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

}  // namespace

AnswerWriter::AnswerWriter(AnswerKind kind, AnswerHead head,
                           const GenerationFields& fields,
                           const Tokenizer* tokenizer,
                           std::vector<ToolCallReader> readers,
                           std::vector<std::string> echoes)
    : kind_(kind),
      head_(std::move(head)),
      tokenizer_(tokenizer),
      logprobs_(fields.top_logprobs.has_value()),
      stream_usage_(fields.stream_usage),
      top_(fields.top_logprobs.value_or(0)) {
  for (size_t i = 0; i < readers.size(); ++i) {
    choices_.emplace_back(std::move(readers[i]),
                          i < echoes.size() ? std::move(echoes[i]) : "");
  }
}

json AnswerWriter::Logprobs(absl::Span<const GeneratedToken> tokens,
                            std::string* bytes) const {
  if (!logprobs_) return nullptr;
  return kind_ == AnswerKind::kChat
             ? ChatLogprobs(*tokenizer_, tokens, top_)
             : CompletionLogprobs(*tokenizer_, tokens, top_, bytes);
}

std::string AnswerWriter::Chunk(json choice) const {
  return ServerSentEvent(Answer(
      head_,
      kind_ == AnswerKind::kChat ? "chat.completion.chunk" : "text_completion",
      json::array({std::move(choice)})));
}

std::string AnswerWriter::Part(int64_t choice, const Event& event) {
  return kind_ == AnswerKind::kChat ? ChatPart(choice, event)
                                    : CompletionPart(choice, event);
}

std::string AnswerWriter::ChatPart(int64_t index, const Event& event) {
  Choice& choice = choices_[index];
  std::string parts;
  if (!choice.begun) {
    choice.begun = true;
    parts = Chunk(ChatDelta(index, {{"role", "assistant"}, {"content", ""}},
                            nullptr, absl::nullopt));
  }
  std::string text = choice.reader.Push(event.text);
  if (event.finished) {
    ParsedAnswer rest = choice.reader.Finish();
    text += rest.content;
    choice.calls = std::move(rest.calls);
  }
  const bool tells_logprobs = logprobs_ && !event.tokens.empty();
  if (!text.empty() || tells_logprobs) {
    absl::StrAppend(
        &parts, Chunk(ChatDelta(index, {{"content", text}},
                                tells_logprobs ? Logprobs(event.tokens, nullptr)
                                               : json(nullptr),
                                absl::nullopt)));
  }
  if (!event.finished) return parts;
  if (!choice.calls.empty()) {
    absl::StrAppend(
        &parts, Chunk(ChatDelta(
                    index, {{"tool_calls", ToolCallsJson(choice.calls, true)}},
                    nullptr, absl::nullopt)));
  }
  absl::StrAppend(
      &parts,
      Chunk(ChatDelta(index, json::object(), nullptr,
                      FinishName(event.reason, !choice.calls.empty()))));
  return parts;
}

std::string AnswerWriter::CompletionPart(int64_t index, const Event& event) {
  Choice& choice = choices_[index];
  std::string text = event.text;
  if (!choice.begun) {
    choice.begun = true;
    text = choice.text + text;  // the echo
  }
  const bool tells_logprobs = logprobs_ && !event.tokens.empty();
  if (text.empty() && !tells_logprobs && !event.finished) return "";
  return Chunk(CompletionChoice(
      index, text,
      tells_logprobs ? Logprobs(event.tokens, &choice.bytes) : json(nullptr),
      event.finished
          ? absl::optional<std::string>(FinishName(event.reason, false))
          : absl::nullopt));
}

std::string AnswerWriter::End(const Usage& usage) const {
  std::string end;
  if (stream_usage_) {
    json last = Answer(head_,
                       kind_ == AnswerKind::kChat ? "chat.completion.chunk"
                                                  : "text_completion",
                       json::array());
    last["usage"] = UsageJson(usage);
    end = ServerSentEvent(last);
  }
  return absl::StrCat(end, "data: [DONE]\n\n");
}

void AnswerWriter::Add(int64_t index, const Event& event) {
  Choice& choice = choices_[index];
  choice.text += choice.reader.Push(event.text);
  if (logprobs_) {
    choice.tokens.insert(choice.tokens.end(), event.tokens.begin(),
                         event.tokens.end());
  }
  if (!event.finished) return;
  ParsedAnswer rest = choice.reader.Finish();
  choice.text += rest.content;
  choice.calls = std::move(rest.calls);
  choice.finish = FinishName(event.reason, !choice.calls.empty());
}

json AnswerWriter::Whole(const Usage& usage) {
  json list = json::array();
  for (Choice& choice : choices_) {
    const int64_t index = static_cast<int64_t>(list.size());
    json logprobs = Logprobs(choice.tokens, &choice.bytes);
    if (kind_ == AnswerKind::kChat) {
      list.push_back(ChatChoice(index, {choice.text, choice.calls},
                                std::move(logprobs), choice.finish));
    } else {
      list.push_back(CompletionChoice(index, choice.text, std::move(logprobs),
                                      choice.finish));
    }
  }
  json answer = Answer(
      head_, kind_ == AnswerKind::kChat ? "chat.completion" : "text_completion",
      std::move(list));
  answer["usage"] = UsageJson(usage);
  return answer;
}

}  // namespace weft
