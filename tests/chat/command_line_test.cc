// Messages and commands, and settings by name.
#include "chat/command_line.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "chat/settings.h"

namespace weft::chat {
namespace {

Entry Parsed(absl::string_view entered) {
  absl::StatusOr<Entry> entry = ParseEntry(entered);
  EXPECT_TRUE(entry.ok()) << entry.status();
  return entry.ok() ? *entry : Entry();
}

std::string ErrorOf(absl::string_view entered) {
  const absl::Status status = ParseEntry(entered).status();
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  return std::string(status.message());
}

TEST(CommandLine, WhatHasNoSlashIsAMessage) {
  EXPECT_EQ(Parsed("  hello\nyou  ").kind, Entry::kMessage);
  EXPECT_EQ(Parsed("  hello\nyou  ").text, "hello\nyou");
  EXPECT_EQ(Parsed(" \n ").kind, Entry::kNothing);
  EXPECT_EQ(Parsed("//usr is a folder").kind, Entry::kMessage);
  EXPECT_EQ(Parsed("//usr is a folder").text, "/usr is a folder");
}

TEST(CommandLine, WhatWasPastedInSeveralLinesIsNoCommand) {
  for (const char* text : {"/save mine\nfoo", "/quit\nx", "/usr/bin\nls"}) {
    EXPECT_EQ(Parsed(text).kind, Entry::kMessage) << text;
    EXPECT_EQ(Parsed(text).text, text);
  }
}

TEST(CommandLine, Commands) {
  EXPECT_EQ(Parsed("/help").kind, Entry::kHelp);
  EXPECT_EQ(Parsed(" /reset ").kind, Entry::kReset);
  EXPECT_EQ(Parsed("/regen").kind, Entry::kRegenerate);
  EXPECT_EQ(Parsed("/log").kind, Entry::kLog);
  EXPECT_EQ(Parsed("/reasoning").kind, Entry::kReasoning);
  EXPECT_EQ(Parsed("/quit").kind, Entry::kQuit);
  EXPECT_EQ(Parsed("/system Be brief.\nBe kind.").text, "Be brief.\nBe kind.");
  EXPECT_EQ(Parsed("/system").text, "");
  EXPECT_EQ(Parsed("/save a file.md").text, "a file.md");
  EXPECT_EQ(Parsed("/set top-k 5").text, "top-k");
  EXPECT_EQ(Parsed("/set top-k=5").value, "5");
  EXPECT_EQ(Parsed("/set").kind, Entry::kSet);
}

TEST(CommandLine, WrongOnesSayWhatIsRight) {
  EXPECT_NE(ErrorOf("/exit now").find("/exit: no such command: see /help"),
            std::string::npos);
  EXPECT_NE(ErrorOf("/usr/bin").find("with two"), std::string::npos);
  EXPECT_EQ(ErrorOf("/save"), "/save: use it as /save FILE");
  EXPECT_EQ(ErrorOf("/set top-k"), "/set: use it as /set [NAME VALUE]");
  EXPECT_EQ(ErrorOf("/quit now"), "/quit: use it alone, without more words");
}

TEST(CommandLine, HelpHasEveryCommand) {
  for (const char* name :
       {"/help", "/reset", "/system [TEXT]", "/regen", "/set [NAME VALUE]",
        "/save FILE", "/log", "/reasoning", "/quit"}) {
    EXPECT_NE(CommandHelp().find(absl::StrCat(name, " ")), std::string::npos)
        << name;
  }
}

TEST(ChatSettings, AreSetByName) {
  Settings settings;
  EXPECT_TRUE(Set("temperature", "0.7", &settings).ok());
  EXPECT_EQ(settings.sampling.temperature, 0.7f);
  EXPECT_TRUE(Set("top-k", "-1", &settings).ok());
  EXPECT_EQ(settings.sampling.top_k, -1);
  EXPECT_TRUE(Set("seed", "18446744073709551615", &settings).ok());
  EXPECT_EQ(settings.sampling.seed, ~uint64_t{0});
  EXPECT_TRUE(Set("tokens", "20", &settings).ok());
  EXPECT_EQ(settings.max_tokens, 20);
}

TEST(ChatSettings, BadOnesChangeNothing) {
  Settings settings;
  const std::string before = Describe(settings);
  const auto error = [&](const char* name, const char* value) {
    const absl::Status status = Set(name, value, &settings);
    EXPECT_FALSE(status.ok()) << name << " " << value;
    return std::string(status.message());
  };
  EXPECT_NE(error("heat", "1").find("use one of temperature, top-k"),
            std::string::npos);
  EXPECT_NE(error("top-k", "many").find("'many' is not a number"),
            std::string::npos);
  error("top-k", "1.5");
  error("top-p", "2");
  error("temperature", "-1");
  error("temperature", "nan");
  error("repeat-penalty", "0");
  error("tokens", "0");
  error("seed", "-1");
  EXPECT_EQ(Describe(settings), before);
}

TEST(ChatSettings, AreDescribedInTheOrderOfTheFlags) {
  EXPECT_EQ(Describe(Settings()),
            "temperature 0.8, top-k 50, top-p 0.9, min-p 0, repeat-penalty "
            "1.1, repeat-window 64, frequency-penalty 0, presence-penalty 0, "
            "seed 0, tokens 512");
}

}  // namespace
}  // namespace weft::chat
