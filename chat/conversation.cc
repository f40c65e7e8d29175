#include "chat/conversation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "text/utf8.h"

namespace weft::chat {
namespace {

using Json = nlohmann::ordered_json;

Json Message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", RepairUtf8(content)}};
}

}  // namespace

void Conversation::Ask(absl::string_view message) {
  turns_.emplace_back();
  turns_.back().message = std::string(message);
}

void Conversation::Answer(absl::string_view answer,
                          absl::string_view reasoning) {
  if (turns_.empty()) return;
  turns_.back().answer = std::string(answer);
  turns_.back().reasoning = std::string(reasoning);
  turns_.back().answered = true;
}

void Conversation::Reopen() {
  if (turns_.empty()) return;
  turns_.back().answer.clear();
  turns_.back().reasoning.clear();
  turns_.back().answered = false;
}

void Conversation::Withdraw() {
  if (turns_.empty()) return;
  turns_.pop_back();
  dropped_ = std::min(dropped_, turns_.size());
}

void Conversation::Reset() {
  turns_.clear();
  dropped_ = 0;
}

Json Conversation::MessagesFrom(size_t turn) const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back(Message("system", system_));
  for (; turn < turns_.size(); ++turn) {
    messages.push_back(Message("user", turns_[turn].message));
    if (turns_[turn].answered) {
      messages.push_back(Message("assistant", turns_[turn].answer));
      if (!turns_[turn].reasoning.empty()) {
        messages.back()["reasoning_content"] =
            RepairUtf8(turns_[turn].reasoning);
      }
    }
  }
  return messages;
}

Json Conversation::Messages() const { return MessagesFrom(dropped_); }

absl::StatusOr<int64_t> Conversation::Trim(
    int64_t most,
    const std::function<absl::StatusOr<int64_t>(const Json& messages)>&
        tokens_of) {
  absl::StatusOr<int64_t> tokens = tokens_of(Messages());
  if (!tokens.ok() || *tokens <= most) return tokens;
  while (tokens.ok() && *tokens > most - most / 4 &&
         dropped_ + 1 < turns_.size()) {
    ++dropped_;
    tokens = tokens_of(Messages());
  }
  return tokens;
}

std::string Conversation::ToJson() const {
  return Json{{"messages", MessagesFrom(0)}}.dump(2) + "\n";
}

std::string Conversation::ToMarkdown() const {
  std::string text = "# Conversation\n";
  const auto add = [&](const char* title, const std::string& content) {
    absl::StrAppend(&text, "\n## ", title, "\n\n", content, "\n");
  };
  if (!system_.empty()) add("System", system_);
  for (const Turn& turn : turns_) {
    add("User", turn.message);
    if (turn.answered) add("Assistant", turn.answer);
  }
  return text;
}

}  // namespace weft::chat
