// The terminal in the state that ncurses needs, and back.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chat/frame.h"
#include "chat/key_reader.h"

namespace weft::chat {

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
  // Takes what has been typed; when standard input is readable. False if the
  // terminal has gone.
  bool Read();
  // The next key that was pressed, a paste as one; never waits. Ctrl-Z stops
  // the process here until it is continued.
  std::optional<KeyPress> Next();
  // How long until Next may have one without Read; infinite if it has not.
  absl::Duration Wait() const;

 private:
  Terminal() = default;

  KeyReader keys_;
};

}  // namespace weft::chat
