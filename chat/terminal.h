// The terminal in the state that ncurses needs, and back.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chat/frame.h"
#include "chat/screen_control.h"

namespace weft::chat {

struct KeyPress {
  Key key;
  std::string text;  // of kText
};

// One at a time; used by one thread.
class Terminal {
 public:
  // Errors: kUnavailable, ncurses does not know this terminal.
  static absl::StatusOr<std::unique_ptr<Terminal>> Open();
  // Restores it. So do faults meanwhile (SIGSEGV, SIGBUS, SIGABRT, ...), before
  // they do what they did without it.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int columns() const;
  int rows() const;
  // After SIGWINCH.
  void Resize();
  // Gives the terminal back and stops the process, until it is continued.
  void Suspend();
  // After SIGCONT: others may have used the terminal.
  void Resume();

  void Show(const Frame& frame);
  // The next key that was pressed, a paste as one; never waits. Ctrl-Z stops
  // the process here until it is continued.
  std::optional<KeyPress> Next();

 private:
  Terminal() = default;
  std::string ReadPaste();
};

}  // namespace weft::chat
