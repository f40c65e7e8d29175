#include "chat/command_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::chat {
namespace {

struct CommandInfo {
  const char* name;
  Entry::Kind kind;
  const char* words;  // that follow; those in brackets may be left out
  const char* help;
};

constexpr CommandInfo kCommands[] = {
    {"/help", Entry::kHelp, "", "this list"},
    {"/reset", Entry::kReset, "", "forget the conversation"},
    {"/system", Entry::kSystem, "[TEXT]",
     "show or set the system message; - removes it"},
    {"/system-file", Entry::kSystemFile, "FILE",
     "set the system message to a file's text"},
    {"/regen", Entry::kRegenerate, "", "another answer to the last message"},
    {"/set", Entry::kSet, "[NAME VALUE]",
     "show or change settings: /set temperature 0.7"},
    {"/save", Entry::kSave, "FILE",
     "write the conversation: JSON if FILE ends with .json, else Markdown"},
    {"/load", Entry::kLoad, "FILE",
     "go on from a conversation that /save wrote as JSON"},
    {"/reasoning", Entry::kReasoning, "", "show that of the newest answer"},
    {"/log", Entry::kLog, "", "show or hide the log"},
    {"/quit", Entry::kQuit, "", "leave"},
};

absl::Status Wrong(const CommandInfo& command) {
  const bool bare = *command.words == '\0';
  return absl::InvalidArgumentError(absl::StrCat(
      command.name, ": use it ",
      bare ? "alone, without more words"
           : absl::StrCat("as ", command.name, " ", command.words)));
}

}  // namespace

absl::StatusOr<Entry> ParseEntry(absl::string_view entered) {
  const absl::string_view text = absl::StripAsciiWhitespace(entered);
  Entry entry;
  if (text.empty()) return entry;
  if (text[0] != '/' || absl::StartsWith(text, "//")) {
    entry.kind = Entry::kMessage;
    entry.text = std::string(text[0] == '/' ? text.substr(1) : text);
    return entry;
  }
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const absl::string_view name = text.substr(0, end);
  entry.text = std::string(absl::StripAsciiWhitespace(text.substr(end)));
  const auto* command =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [&](const CommandInfo& c) { return name == c.name; });
  // Commands have one line, except for texts: what has several was pasted.
  if (absl::StrContains(text, '\n') &&
      (command == std::end(kCommands) || command->kind != Entry::kSystem)) {
    entry.kind = Entry::kMessage;
    entry.text = std::string(text);
    return entry;
  }
  if (command == std::end(kCommands)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": no such command: see /help; a message that "
                     "begins with a slash is written with two"));
  }
  entry.kind = command->kind;
  const std::string words = command->words;
  if (words.empty() && !entry.text.empty()) return Wrong(*command);
  if (words == "FILE" && entry.text.empty()) return Wrong(*command);
  if (entry.kind == Entry::kSet && !entry.text.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(
        entry.text, absl::ByAnyChar(" \t\n="), absl::SkipEmpty());
    if (parts.size() != 2) return Wrong(*command);
    entry.text = parts[0];
    entry.value = parts[1];
  }
  return entry;
}

std::string CommandHelp() {
  std::string help;
  for (const CommandInfo& command : kCommands) {
    std::string use = absl::StrCat(
        command.name, *command.words == '\0' ? "" : " ", command.words);
    use.resize(std::max<size_t>(use.size() + 2, 20), ' ');
    absl::StrAppend(&help, help.empty() ? "" : "\n", use, command.help);
  }
  return help;
}

}  // namespace weft::chat
