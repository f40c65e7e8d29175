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

absl::StatusOr<Conversation> Conversation::FromJson(absl::string_view text) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const auto wrong = [](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no conversation: ", why, ": want what /save FILE.json writes"));
  };
  if (text.size() > kMostBytes) return wrong("it has more than 64 MB");
  const Json read = Json::parse(text.begin(), text.end(), nullptr, false);
  const auto found = read.is_object() ? read.find("messages") : read.end();
  if (!read.is_object() || found == read.end() || !found->is_array()) {
    return wrong("it is no JSON object with messages");
  }
  Conversation conversation;
  size_t number = 0;
  for (const Json& message : *found) {
    ++number;
    const auto text_of = [&](const char* key) -> const std::string* {
      if (!message.is_object()) return nullptr;
      const auto it = message.find(key);
      return it == message.end() ? nullptr : it->get_ptr<const std::string*>();
    };
    const std::string* role = text_of("role");
    const std::string* content = text_of("content");
    const std::string* reasoning = text_of("reasoning_content");
    std::vector<Turn>& turns = conversation.turns_;
    if (role == nullptr || content == nullptr) {
      return wrong(absl::StrCat("message ", number, " has no role or no text"));
    }
    if (*role == "system" && number == 1) {
      conversation.SetSystem(*content);
    } else if (*role == "user") {
      conversation.Ask(*content);
    } else if (*role == "assistant" && !turns.empty() &&
               !turns.back().answered) {
      conversation.Answer(*content, reasoning == nullptr ? "" : *reasoning);
    } else {
      return wrong(absl::StrCat("message ", number,
                                " is out of place: its role is '", *role, "'"));
    }
  }
  return conversation;
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
