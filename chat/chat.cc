#include "chat/chat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "chat/command_line.h"
#include "text/answer/marker_tokens.h"

namespace weft::chat {
namespace {

constexpr char kAnswering[] =
    "an answer is on its way: wait for it, or stop it first";
// Where an answer ends in plain lines, for a model that goes on with the
// user's.
constexpr char kNextUser[] = "\nUser:";

Reply Notice(std::string notice) {
  Reply reply;
  reply.notices.push_back(std::move(notice));
  return reply;
}

Reply Failure(absl::string_view message) {
  Reply reply = Notice(std::string(message));
  reply.failed = true;
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Chat>> Chat::Create(
    std::unique_ptr<Scheduler> scheduler, ChatTemplate chat_template,
    Options options) {
  std::unique_ptr<Chat> chat(new Chat(
      std::move(scheduler), std::move(chat_template), std::move(options)));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<AnswerStream> stream,
                        AnswerStream::Create(chat->scheduler_.get()));
  chat->stream_ = std::move(stream);
  return chat;
}

Chat::Chat(std::unique_ptr<Scheduler> scheduler, ChatTemplate chat_template,
           Options options)
    : scheduler_(std::move(scheduler)),
      template_(std::move(chat_template)),
      options_(std::move(options)) {
  conversation_.SetSystem(options_.system);
  customs_ = answer::CustomsOf(template_, scheduler_->tokenizer());
  marker_tokens_ =
      answer::MarkerTokens(scheduler_->tokenizer(), customs_.forms);
}

Reply Chat::Say(absl::string_view message) {
  if (answering()) return Failure(kAnswering);
  conversation_.Ask(std::string(message));
  Reply reply = Ask();
  if (reply.failed) {
    conversation_.Withdraw();
    ++failures_;
  }
  return reply;
}

Reply Chat::Enter(absl::string_view entered) {
  absl::StatusOr<Entry> entry = ParseEntry(entered);
  if (!entry.ok()) return Failure(entry.status().message());
  if (answering() &&
      (entry->kind == Entry::kMessage || entry->kind == Entry::kReset ||
       entry->kind == Entry::kSystem || entry->kind == Entry::kSystemFile ||
       entry->kind == Entry::kLoad || entry->kind == Entry::kRegenerate)) {
    return Failure(kAnswering);
  }
  switch (entry->kind) {
    case Entry::kNothing:
      return {};
    case Entry::kMessage:
      return Say(entry->text);
    case Entry::kHelp:
      return Notice(CommandHelp());
    case Entry::kReset: {
      conversation_.Reset();
      answers_ = 0;
      speed_ = Speed();
      Reply reply = Notice("the conversation was forgotten");
      reply.reset = true;
      return reply;
    }
    case Entry::kSystem:
      return SetSystem(entry->text);
    case Entry::kSystemFile:
      return SetSystemFromFile(entry->text);
    case Entry::kLoad:
      return Load(entry->text);
    case Entry::kSave:
      return Save(entry->text);
    case Entry::kRegenerate:
      return Regenerate();
    case Entry::kSet: {
      if (entry->text.empty()) return Notice(Describe(settings()));
      absl::Status s = Set(entry->text, entry->value, &options_.settings);
      if (!s.ok()) return Failure(s.message());
      return Notice(absl::StrCat(entry->text, " is now ", entry->value));
    }
    case Entry::kReasoning:
      if (answering()) return Notice(reasoning_);
      return Notice(conversation_.turns().empty() ||
                            conversation_.turns().back().reasoning.empty()
                        ? "the newest answer has no reasoning"
                        : conversation_.turns().back().reasoning);
    case Entry::kLog: {
      Reply reply;
      reply.toggle_log = true;
      return reply;
    }
    case Entry::kQuit: {
      Reply reply;
      reply.quit = true;
      return reply;
    }
  }
  return {};
}

Reply Chat::SetSystem(const std::string& text) {
  if (text.empty()) {
    return Notice(
        conversation_.system().empty()
            ? "there is no system message"
            : absl::StrCat("system message: ", conversation_.system()));
  }
  conversation_.SetSystem(text == "-" ? "" : text);
  return Notice(text == "-" ? "the system message was removed"
                            : "the system message was set");
}

Reply Chat::Save(const std::string& path) {
  const bool json = absl::EndsWith(absl::AsciiStrToLower(path), ".json");
  absl::Status s = options_.write_file(
      path, json ? conversation_.ToJson() : conversation_.ToMarkdown());
  if (!s.ok()) return Failure(absl::StrCat("/save: ", s.message()));
  return Notice(absl::StrCat("written: ", path));
}

Reply Chat::SetSystemFromFile(const std::string& path) {
  absl::StatusOr<std::string> text = options_.read_file(path);
  if (!text.ok()) {
    return Failure(absl::StrCat("/system-file: ", text.status().message()));
  }
  absl::StripTrailingAsciiWhitespace(&*text);
  if (text->empty()) {
    return Failure(absl::StrCat("/system-file: ", path,
                                ": is empty: /system - removes the message"));
  }
  conversation_.SetSystem(*text);
  return Notice("the system message was set");
}

Reply Chat::Load(const std::string& path) {
  absl::StatusOr<std::string> text = options_.read_file(path);
  if (!text.ok()) {
    return Failure(absl::StrCat("/load: ", text.status().message()));
  }
  absl::StatusOr<Conversation> loaded = Conversation::FromJson(*text);
  if (!loaded.ok()) {
    return Failure(
        absl::StrCat("/load: ", path, ": ", loaded.status().message()));
  }
  conversation_ = *std::move(loaded);
  answers_ = static_cast<int64_t>(conversation_.turns().size());
  speed_ = Speed();
  Reply reply = Notice(conversation_.ToMarkdown());
  reply.notices.push_back(absl::StrCat("loaded: ", path));
  reply.reset = true;
  return reply;
}

Reply Chat::Regenerate() {
  if (conversation_.turns().empty()) {
    return Failure("/regen: nothing was said yet: enter a message first");
  }
  const Turn before = conversation_.turns().back();
  conversation_.Reopen();
  Reply reply = Ask();
  if (reply.failed && before.answered) {
    conversation_.Answer(before.answer, before.reasoning);
  }
  reply.regenerate = !reply.failed;
  if (!reply.failed && settings().sampling.temperature == 0) {
    reply.notices.push_back(
        "temperature 0 gives the same answer again: /set temperature 0.8");
  }
  return reply;
}

absl::StatusOr<std::vector<int32_t>> Chat::Encode(
    const nlohmann::ordered_json& messages) {
  ChatRequest request;
  request.messages = messages;
  WEFT_ASSIGN_OR_RETURN(
      std::vector<TextSegment> segments,
      answer::RenderConversation(template_, customs_, std::move(request)));
  prompt_ = JoinSegments(segments);
  return scheduler_->tokenizer().EncodeSegments(segments, {});
}

Reply Chat::Ask() {
  const int64_t capacity = scheduler_->capacity();
  const int64_t reserve = std::min(settings().max_tokens, capacity / 4);
  const size_t dropped = conversation_.dropped();
  Request request;
  absl::StatusOr<int64_t> tokens = conversation_.Trim(
      capacity - reserve,
      [&](const nlohmann::ordered_json& messages) -> absl::StatusOr<int64_t> {
        WEFT_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, Encode(messages));
        request.prompt_tokens = std::move(prompt);
        return static_cast<int64_t>(request.prompt_tokens.size());
      });
  if (!tokens.ok()) return Failure(tokens.status().message());
  request.max_tokens = settings().max_tokens;
  request.sampling = settings().sampling;
  request.sampling.seed =
      ChoiceSeed(settings().sampling.seed, static_cast<int>(answers_));
  if (template_.name() == "plain") request.stop_strings = {kNextUser};
  request.shown_special = marker_tokens_;
  answer::ReaderOptions reading;
  reading.prompt = prompt_;
  reader_ = std::make_unique<answer::AnswerReader>(customs_.forms,
                                                   std::move(reading));
  reasoning_.clear();
  answer_.clear();
  held_.clear();
  absl::Status s = stream_->Start(std::move(request));
  if (!s.ok()) return Failure(s.message());
  ++answers_;
  speed_ = Speed();
  speed_.prompt_tokens = *tokens;
  Reply reply;
  reply.asked = true;
  if (conversation_.dropped() > dropped) {
    const size_t gone = conversation_.dropped() - dropped;
    reply.notices.push_back(absl::StrCat(
        "the context is full: the oldest ", gone == 1 ? "turn" : "turns",
        gone == 1 ? "" : absl::StrCat(" (", gone, ")"),
        gone == 1 ? " is" : " are", " not sent any more"));
  }
  return reply;
}

News Chat::Take() {
  News news;
  for (const auto& [event, at] : stream_->Take()) {
    if (speed_.answer_tokens == 0) first_token_ = at;
    speed_.answer_tokens = event.usage.completion_tokens;
    speed_.cached_tokens = event.usage.cached_tokens;
    speed_.drafted_tokens = event.usage.drafted_tokens;
    speed_.accepted_tokens = event.usage.accepted_tokens;
    speed_.first_token_seconds = event.usage.first_token_seconds;
    const double seconds = absl::ToDoubleSeconds(at - first_token_);
    if (speed_.answer_tokens > 1 && seconds > 0) {
      speed_.tokens_per_second = (speed_.answer_tokens - 1) / seconds;
    }
    // Spaces around an answer are the template's affair.
    std::string text = held_;
    const auto read = [&](const std::vector<answer::AnswerEvent>& told) {
      for (const answer::AnswerEvent& part : told) {
        (part.kind == answer::AnswerEvent::kReasoning ? reasoning_ : text) +=
            part.text;
      }
    };
    read(reader_->Push(event.text));
    if (event.finished) read(reader_->Finish(/*cut=*/false));
    const absl::string_view whole =
        answer_.empty() ? absl::StripLeadingAsciiWhitespace(text) : text;
    const absl::string_view shown = absl::StripTrailingAsciiWhitespace(whole);
    held_ = std::string(whole.substr(shown.size()));
    answer_.append(shown.data(), shown.size());
    news.text.append(shown.data(), shown.size());
    if (event.finished) Finish(event, &news);
  }
  return news;
}

void Chat::Finish(const Event& event, News* news) {
  news->finished = true;
  conversation_.Answer(answer_, reasoning_);
  if (!reasoning_.empty()) {
    news->notices.push_back(absl::StrCat("reasoned before, in ",
                                         reasoning_.size(),
                                         " bytes: /reasoning shows them"));
  }
  ++(event.reason == FinishReason::kError ? failures_ : successes_);
  switch (event.reason) {
    case FinishReason::kEndOfText:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      break;
    case FinishReason::kLength:
      news->notices.push_back(
          absl::StrCat("cut off after ", event.usage.completion_tokens,
                       " tokens: -n N or /set tokens N for more"));
      break;
    case FinishReason::kContext:
      news->notices.push_back(absl::StrCat("cut off: the context of ",
                                           scheduler_->capacity(),
                                           " tokens is full"));
      break;
    case FinishReason::kEmbedded:
    case FinishReason::kDeadline:
    case FinishReason::kCancelled:
      news->notices.push_back("stopped");
      break;
    case FinishReason::kError:
      news->notices.push_back(std::string(event.status.message()));
      news->failed = true;
      break;
  }
}

}  // namespace weft::chat
