// What the user enters: a message, or a command that begins with a slash.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft::chat {

struct Entry {
  enum Kind {
    kNothing,  // blank
    kMessage,  // text: what is sent
    kHelp,
    kReset,
    kSystem,      // text: the new system message; may be empty: shows it
    kSystemFile,  // text: the file
    kSave,        // text: the file
    kLoad,        // text: the file
    kRegenerate,  //
    kSet,         // text and value; without text: shows all
    kReasoning,
    kLog,
    kQuit,
  };
  Kind kind = kNothing;
  std::string text, value;
};

// A message that begins with a slash is written with two. Errors, in one line:
// no such command, or words that it does not take.
absl::StatusOr<Entry> ParseEntry(absl::string_view entered);

// The commands, a line each.
std::string CommandHelp();

}  // namespace weft::chat
