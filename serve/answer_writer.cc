#include "serve/answer_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

}  // namespace

AnswerWriter::AnswerWriter(AnswerKind kind, AnswerHead head,
                           const GenerationFields& fields,
                           const Tokenizer* tokenizer,
                           std::vector<answer::AnswerReader> readers,
                           std::vector<std::string> echoes)
    : kind_(kind),
      head_(std::move(head)),
      tokenizer_(tokenizer),
      logprobs_(fields.top_logprobs.has_value()),
      stream_usage_(fields.stream_usage),
      progress_(fields.progress),
      echoes_(!echoes.empty()),
      prompt_logprobs_(fields.prompt_logprobs.has_value() &&
                       !(echoes_ && logprobs_)),
      top_(fields.top_logprobs.value_or(0)) {
  for (size_t i = 0; i < readers.size(); ++i) {
    choices_.emplace_back(std::move(readers[i]),
                          i < echoes.size() ? std::move(echoes[i]) : "",
                          echoes_ && fields.prompt_logprobs.has_value());
  }
}

// Of what an event brings: of an echo the prompt's tokens come first.
json AnswerWriter::Logprobs(const Event& event, Choice* choice) const {
  if (!logprobs_) return nullptr;
  if (kind_ == AnswerKind::kChat) {
    return ChatLogprobs(*tokenizer_, event.tokens, top_);
  }
  if (!echoes_ || event.prompt.empty()) {
    return CompletionLogprobs(*tokenizer_, event.tokens, top_,
                              &choice->characters);
  }
  json lists =
      CompletionLogprobs(*tokenizer_, event.prompt, top_, &choice->characters);
  if (!choice->told_prompt) {
    choice->told_prompt = true;
    lists["token_logprobs"][0] = nullptr;
    lists["top_logprobs"][0] = nullptr;
  }
  json rest =
      CompletionLogprobs(*tokenizer_, event.tokens, top_, &choice->characters);
  for (auto& list : rest.items()) {
    for (json& element : list.value()) {
      lists[list.key()].push_back(std::move(element));
    }
  }
  return lists;
}

// Of the prompt, while it is read; nothing for other events.
std::string AnswerWriter::Progress(const Event& event) const {
  const Usage& usage = event.usage;
  if (!progress_ || usage.completion_tokens > 1 || event.choice > 0) return "";
  json part = Answer(
      head_,
      kind_ == AnswerKind::kChat ? "chat.completion.chunk" : "text_completion",
      json::array());
  part["prompt_progress"] = ProgressJson(usage, begun_);
  return ServerSentEvent(part);
}

std::string AnswerWriter::Chunk(json choice) const {
  json chunk = Answer(
      head_,
      kind_ == AnswerKind::kChat ? "chat.completion.chunk" : "text_completion",
      json::array({std::move(choice)}));
  // It comes at the end; until then it is null, as OpenAI has it.
  if (stream_usage_) chunk["usage"] = nullptr;
  return ServerSentEvent(chunk);
}

std::string AnswerWriter::Part(int64_t choice, const Event& event) {
  return absl::StrCat(Progress(event), kind_ == AnswerKind::kChat
                                           ? ChatPart(choice, event)
                                           : CompletionPart(choice, event));
}

std::string AnswerWriter::Failure(const ApiError& error) {
  return ServerSentEvent(ErrorJson(error));
}

std::string AnswerWriter::ChatPart(int64_t index, const Event& event) {
  Choice& choice = choices_[index];
  std::string parts;
  if (!choice.begun) {
    choice.begun = true;
    parts = Chunk(ChatDelta(index, {{"role", "assistant"}, {"content", ""}},
                            nullptr, absl::nullopt));
  }
  bool tells_logprobs = logprobs_ && !event.tokens.empty();
  const auto add = [&](json delta) {
    if (delta.is_null()) return;
    absl::StrAppend(
        &parts, Chunk(ChatDelta(
                    index, std::move(delta),
                    tells_logprobs ? Logprobs(event, &choice) : json(nullptr),
                    absl::nullopt)));
    tells_logprobs = false;
  };
  for (const answer::AnswerEvent& told : Read(&choice, event)) {
    choice.called |= told.kind == answer::AnswerEvent::kCallEnd &&
                     told.end == answer::AnswerEvent::kWhole;
    add(DeltaOf(told));
  }
  if (tells_logprobs) add({{"content", ""}});
  if (!event.finished) return parts;
  absl::StrAppend(&parts,
                  Chunk(ChatDelta(index, json::object(), nullptr,
                                  FinishName(event.reason, choice.called))));
  return parts;
}

std::vector<answer::AnswerEvent> AnswerWriter::Read(Choice* choice,
                                                    const Event& event) {
  std::vector<answer::AnswerEvent> events;
  if (kind_ == AnswerKind::kCompletion) {
    events.emplace_back();
    events.back().text = event.text;
    return events;
  }
  events = choice->reader.Push(event.text);
  if (!event.finished) return events;
  for (answer::AnswerEvent& told :
       choice->reader.Finish(WasCut(event.reason))) {
    events.push_back(std::move(told));
  }
  return events;
}

std::string AnswerWriter::CompletionPart(int64_t index, const Event& event) {
  Choice& choice = choices_[index];
  std::string text = event.text;
  if (!choice.begun) {
    choice.begun = true;
    text = choice.answer.content + text;  // the echo
  }
  const bool tells_logprobs = logprobs_ && (!event.tokens.empty() ||
                                            (echoes_ && !event.prompt.empty()));
  if (text.empty() && !tells_logprobs && !event.finished) return "";
  return Chunk(CompletionChoice(
      index, text, tells_logprobs ? Logprobs(event, &choice) : json(nullptr),
      event.finished
          ? absl::optional<std::string>(FinishName(event.reason, false))
          : absl::nullopt));
}

std::string AnswerWriter::End(const Usage& usage) {
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
  for (const answer::AnswerEvent& told : Read(&choice, event)) {
    choice.answer.Add(told);
  }
  bytes_ += static_cast<int64_t>(event.text.size());
  if (logprobs_) {
    // As text at once: a tree takes some ten times as much.
    const json lists = Logprobs(event, &choice);
    choice.logprobs.resize(lists.size());
    size_t at = 0;
    for (const json& list : lists) {
      std::string& all = choice.logprobs[at++];
      bytes_ -= static_cast<int64_t>(all.size());
      for (const json& element : list) {
        absl::StrAppend(&all, all.empty() ? "" : ",", JsonText(element));
      }
      bytes_ += static_cast<int64_t>(all.size());
    }
  }
  if (prompt_logprobs_) {
    for (const GeneratedToken& token : event.prompt) {
      const json told = choice.told_prompt ? PromptLogprob(*tokenizer_, token)
                                           : json(nullptr);
      choice.told_prompt = true;
      std::string& all = choice.prompt_logprobs;
      bytes_ -= static_cast<int64_t>(all.size());
      absl::StrAppend(&all, all.empty() ? "" : ",", JsonText(told));
      bytes_ += static_cast<int64_t>(all.size());
    }
  }
  if (!event.finished) return;
  choice.finish = FinishName(event.reason, !choice.answer.calls.empty());
}

json AnswerWriter::WholeChoice(int64_t index) const {
  const Choice& choice = choices_[index];
  return kind_ == AnswerKind::kChat
             ? ChatChoice(index, choice.answer, nullptr, choice.finish)
             : CompletionChoice(index, choice.answer.content, nullptr,
                                choice.finish);
}

void AnswerWriter::Whole(const Usage& usage, JsonStream* answer) {
  const json lists = Logprobs(Event(), &choices_[0]);  // all empty, or null
  const auto write_logprobs = [&](const std::vector<std::string>& elements) {
    if (lists.is_null()) return answer->Value(lists);
    answer->Open('{');
    size_t at = 0;
    for (const auto& list : lists.items()) {
      answer->Key(list.key());
      const size_t i = at++;
      if (!list.value().is_array()) {
        answer->Value(list.value());
        continue;
      }
      answer->Open('[');
      if (i < elements.size() && !elements[i].empty()) answer->Raw(elements[i]);
      answer->Close();
    }
    answer->Close();
  };
  const json head = Answer(
      head_, kind_ == AnswerKind::kChat ? "chat.completion" : "text_completion",
      json::array());
  answer->Open('{');
  for (const auto& field : head.items()) {
    answer->Key(field.key());
    if (field.key() != "choices") {
      answer->Value(field.value());
      continue;
    }
    answer->Open('[');
    for (size_t i = 0; i < choices_.size() && !answer->broken(); ++i) {
      answer->Open('{');
      const json choice = WholeChoice(static_cast<int64_t>(i));
      for (const auto& part : choice.items()) {
        answer->Key(part.key());
        if (part.key() == "logprobs") {
          write_logprobs(choices_[i].logprobs);
        } else {
          answer->Value(part.value());
        }
      }
      if (prompt_logprobs_) {
        answer->Key("prompt_logprobs");
        answer->Open('[');
        if (!choices_[i].prompt_logprobs.empty()) {
          answer->Raw(choices_[i].prompt_logprobs);
        }
        answer->Close();
      }
      answer->Close();
    }
    answer->Close();
  }
  answer->Key("usage");
  answer->Value(UsageJson(usage));
  answer->Close();
}

}  // namespace weft
