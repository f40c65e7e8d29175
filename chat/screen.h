// A chat on the whole terminal, drawn with ncurses.
//
// Thin: keys go to ScreenControl, its picture goes to the terminal. The loop
// waits for keys, news of the answer, and signals at once, so the model never
// blocks typing. However the chat ends, also by a signal or a fault, the
// terminal is as before.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chat/chat.h"

namespace weft::chat {

// Returns the exit code: 0; 130 after Ctrl-C, 128 + n after another signal.
// Needs a terminal as standard input and output, and UseUtf8Locale. Errors:
// kUnavailable, ncurses does not know this terminal (nothing was drawn). Once
// at a time.
absl::StatusOr<int> RunScreen(Chat& chat,
                              const std::vector<std::string>& warnings);

}  // namespace weft::chat
