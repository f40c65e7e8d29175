// A chat through plain lines, for pipes and simple terminals: a line is a
// message or a command, the answer goes to standard output with one newline,
// all else to standard error. No escape codes.
//
// Ctrl-C stops the answer and ends the chat; at a keyboard (`prompt`) it ends
// the chat only where there is no answer to stop, or the second time. At the
// end of the input the chat ends when all is answered.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chat/chat.h"

namespace weft::chat {

struct LineModeOptions {
  bool quiet = false;   // only errors, and what commands say
  bool prompt = false;  // somebody types: "> " on standard error
  // In place of standard input: the only message. Its failure is code 1.
  std::optional<std::string> message;
};

// Returns the exit code: 0; 130 after Ctrl-C, 128 + n after another signal.
// Errors: standard input cannot be read.
absl::StatusOr<int> RunLineMode(Chat& chat, const LineModeOptions& options);

}  // namespace weft::chat
