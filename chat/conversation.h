// What has been said, and what of it is sent.
//
// Idea: when the context is full, whole turns go, the oldest first; the system
// message and the newest message always stay. What goes is not sent any more,
// but stays in the conversation that is shown and saved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft::chat {

// A user's message and the answer to it.
struct Turn {
  std::string message;
  std::string reasoning;  // before the answer
  std::string answer;
  bool answered = false;
};

class Conversation {
 public:
  const std::string& system() const { return system_; }
  void SetSystem(absl::string_view text) { system_ = std::string(text); }

  const std::vector<Turn>& turns() const { return turns_; }
  // Turns at the front that are not sent any more.
  size_t dropped() const { return dropped_; }

  void Ask(absl::string_view message);
  // To the newest message.
  void Answer(absl::string_view answer, absl::string_view reasoning = "");
  // The newest message, if there is one, is not answered any more.
  void Reopen();
  // The newest message was not taken: forgets it.
  void Withdraw();
  // Forgets all turns; the system message stays.
  void Reset();

  // Of what is sent: the system message if there is one, then turns.
  nlohmann::ordered_json Messages() const;

  // If `tokens_of(Messages())` is above `most`, drops turns until a quarter of
  // `most` is free, or only the newest is left. Returns the last count. More
  // than must be, and for good: so most messages have the same beginning as the
  // one before, which is cheap to send again.
  absl::StatusOr<int64_t> Trim(
      int64_t most, const std::function<absl::StatusOr<int64_t>(
                        const nlohmann::ordered_json& messages)>& tokens_of);

  // What ToJson wrote, or any such messages of texts: a system message first if
  // there is one, then users' messages, each with its answer or none. Errors
  // say which message is none of these. At most 64 MB.
  static absl::StatusOr<Conversation> FromJson(absl::string_view text);

  // All of it: {"messages": [..]}, which chat APIs take, or a document.
  std::string ToJson() const;
  std::string ToMarkdown() const;

 private:
  nlohmann::ordered_json MessagesFrom(size_t turn) const;

  std::string system_;
  std::vector<Turn> turns_;
  size_t dropped_ = 0;
};

}  // namespace weft::chat
