// A chat without a face: takes what the user enters, asks the model, and tells
// what to show. Line mode and the screen are two faces of it.
//
// For one thread, which calls Take when fd() is readable.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chat/answer_stream.h"
#include "chat/conversation.h"
#include "chat/settings.h"
#include "runtime/api/scheduler.h"
#include "text/answer/customs.h"
#include "text/answer/reader.h"
#include "text/chat_template.h"

namespace weft::chat {

struct Options {
  Settings settings;
  std::string system;
  // Writes a file whole or not at all (/save).
  std::function<absl::Status(const std::string& path,
                             absl::string_view content)>
      write_file;
  // The whole file (/load, /system-file).
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
};

// What became of an entry.
struct Reply {
  std::vector<std::string> notices;  // lines for the user; may hold newlines
  bool failed = false;               // the notice is an error; nothing was done
  bool asked = false;                // an answer is on its way
  bool regenerate = false;           // in place of the one that is shown
  bool reset = false;                // the conversation was forgotten
  bool toggle_log = false;
  bool quit = false;
};

// What has come of an answer.
struct News {
  // Goes on from the text so far, in whole characters; reasoning is not in it.
  std::string text;
  std::vector<std::string> notices;
  bool failed = false;    // the notice is an error
  bool finished = false;  // the answer's end
};

struct Speed {
  double tokens_per_second = 0;  // of the newest answer, from its first token
  double first_token_seconds = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt
  int64_t answer_tokens = 0;
  int64_t drafted_tokens = 0;   // guessed and tried
  int64_t accepted_tokens = 0;  // of them, those that came true
};

class Chat {
 public:
  // Errors: no file descriptors left.
  static absl::StatusOr<std::unique_ptr<Chat>> Create(
      std::unique_ptr<Scheduler> scheduler, ChatTemplate chat_template,
      Options options);

  // A message or a command. While an answer is on its way, messages and
  // commands that change the conversation are refused.
  Reply Enter(absl::string_view entered);
  // A message, whatever it looks like.
  Reply Say(absl::string_view message);

  // Readable when Take has something.
  int fd() const { return stream_->fd(); }
  News Take();
  bool answering() const { return stream_->running(); }
  // The answer ends soon; what there is of it counts.
  void Stop() { stream_->Stop(); }

  const Scheduler& scheduler() const { return *scheduler_; }
  const Conversation& conversation() const { return conversation_; }
  const Settings& settings() const { return options_.settings; }
  const ChatTemplate& chat_template() const { return template_; }
  const Speed& speed() const { return speed_; }
  // The answer that is on its way has begun with reasoning, and is still there.
  bool reasoning() const {
    return answering() && answer_.empty() && !reasoning_.empty();
  }
  // There were messages, and each of them failed.
  bool only_failed() const { return failures_ > 0 && successes_ == 0; }
  // Tokens of the context that the newest message and answer fill.
  int64_t context_used() const {
    return speed_.prompt_tokens + speed_.answer_tokens;
  }

 private:
  Chat(std::unique_ptr<Scheduler> scheduler, ChatTemplate chat_template,
       Options options);

  // Asks for an answer to the newest message.
  Reply Ask();
  Reply Regenerate();
  Reply Save(const std::string& path);
  Reply Load(const std::string& path);
  Reply SetSystemFromFile(const std::string& path);
  Reply SetSystem(const std::string& text);
  absl::StatusOr<std::vector<int32_t>> Encode(
      const nlohmann::ordered_json& messages);
  void Finish(const Event& event, News* news);

  std::unique_ptr<Scheduler> scheduler_;
  ChatTemplate template_;
  Options options_;
  Conversation conversation_;
  std::unique_ptr<AnswerStream> stream_;
  answer::TemplateCustoms customs_;
  std::vector<int32_t> marker_tokens_;
  std::unique_ptr<answer::AnswerReader> reader_;  // of the newest answer
  std::string reasoning_;                         // so far
  std::string prompt_;   // the text that was encoded last
  std::string answer_;   // so far
  std::string held_;     // spaces that are part of it if more follows
  int64_t answers_ = 0;  // since the last reset: each has a seed of its own
  int64_t successes_ = 0, failures_ = 0;  // messages
  Speed speed_;
  absl::Time first_token_;
};

}  // namespace weft::chat
