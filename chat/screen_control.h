// The screen without a terminal: keys and news in, pictures out.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chat/chat.h"
#include "chat/frame.h"
#include "chat/key_reader.h"
#include "chat/layout.h"
#include "chat/line_editor.h"
#include "chat/transcript.h"

namespace weft::chat {

class ScreenControl {
 public:
  // `chat` must outlive it. Warnings are shown first.
  ScreenControl(Chat* chat, const std::vector<std::string>& warnings);

  // `text` of kText and of a paste: any bytes.
  void Press(Key key, absl::string_view text = "");
  // When chat->fd() is readable.
  void TakeNews();
  // To be shown until something changes.
  Frame Draw(int columns, int rows);

  // Set when the user wants to leave: the exit code.
  bool ended() const { return ended_; }
  int exit_code() const { return exit_code_; }

 private:
  void Send();
  void Leave(int exit_code);
  void Log(std::string line);
  ScreenContent Content() const;

  Chat* chat_;
  LineEditor editor_;
  Transcript transcript_;
  Scroll scroll_;
  std::vector<std::string> log_;
  bool show_log_ = false;
  // By Ctrl-C on a message that was not sent; any other key takes it back.
  bool asked_to_leave_ = false;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace weft::chat
