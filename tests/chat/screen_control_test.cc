// Keys in, pictures out, with the embedded model behind them.
#include "chat/screen_control.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chat/terminal_text.h"

namespace weft::chat {
namespace {

class Control : public testing::Test {
 protected:
  void SetUp() override { Begin(""); }

  // Empty: the default template.
  void Begin(absl::string_view template_source) {
    ASSERT_TRUE(UseUtf8Locale());
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load("", {});
    ASSERT_TRUE(engine.ok()) << engine.status();
    absl::StatusOr<ChatTemplate> chat_template =
        template_source.empty()
            ? ChatTemplate::Default((*engine)->plan().vocabulary)
            : ChatTemplate::Parse(template_source, "<s>", "</s>");
    ASSERT_TRUE(chat_template.ok()) << chat_template.status();
    Options options;
    options.settings.sampling.temperature = 0;
    options.settings.max_tokens = 400;
    options.write_file = [this](const std::string& path,
                                absl::string_view content) {
      saved_ = absl::StrCat(path, ": ", content);
      return absl::OkStatus();
    };
    options.read_file =
        [this](const std::string& path) -> absl::StatusOr<std::string> {
      if (path == "none") return absl::NotFoundError("none: no such file");
      return file_;
    };
    absl::StatusOr<std::unique_ptr<Scheduler>> scheduler =
        Scheduler::Create(*std::move(engine), {});
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    absl::StatusOr<std::unique_ptr<Chat>> chat = Chat::Create(
        *std::move(scheduler), *std::move(chat_template), std::move(options));
    ASSERT_TRUE(chat.ok()) << chat.status();
    chat_ = *std::move(chat);
    control_ = std::make_unique<ScreenControl>(
        chat_.get(), std::vector<std::string>{"a \033warning"});
  }

  void Send(absl::string_view text) {
    control_->Press(Key::kText, text);
    control_->Press(Key::kEnter);
  }

  void WaitForAnswer() {
    while (chat_->answering()) {
      pollfd news = {chat_->fd(), POLLIN, 0};
      ASSERT_EQ(poll(&news, 1, 60000), 1);
      control_->TakeNews();
    }
  }

  std::string Seen() {
    const Frame frame = control_->Draw(80, 40);
    std::string text;
    for (size_t i = 0; i < frame.rows.size(); ++i) {
      absl::StrAppend(&text, frame.RowText(i), "\n");
    }
    return text;
  }
  bool Shows(absl::string_view text) { return absl::StrContains(Seen(), text); }

  std::string saved_, file_;
  std::unique_ptr<Chat> chat_;
  std::unique_ptr<ScreenControl> control_;
};

TEST_F(Control, ShowsModelSettingsAndWarnings) {
  for (const char* text : {"Austen 3.7M", "3.7 M parameters", "context 512",
                           "greedy, up to 400 tokens", "a \uFFFDwarning",
                           "context 0/512", "ready"}) {
    EXPECT_TRUE(Shows(text)) << text << "\n" << Seen();
  }
}

TEST_F(Control, AMessageIsAnsweredAndSaved) {
  Send("hello");
  EXPECT_TRUE(Shows("You\n  hello\n"));
  EXPECT_TRUE(Shows("Esc stops ")) << Seen();
  WaitForAnswer();
  EXPECT_TRUE(Shows("ready"));
  EXPECT_TRUE(Shows("ms/token"));
  const std::string& answer = chat_->conversation().turns()[0].answer;
  EXPECT_GT(answer.size(), 20u);
  EXPECT_TRUE(Shows(WrapText(answer, 77)[0]));
  Send("/save x.md");
  EXPECT_TRUE(absl::StrContains(saved_, "x.md: # Conversation"));
  EXPECT_TRUE(absl::StrContains(saved_, answer));
  control_->Press(Key::kLog);
  EXPECT_TRUE(Shows("first after"));
}

// News is taken by this thread alone, so an answer is on its way until then.
TEST_F(Control, WhileAnAnswerIsOnItsWayMessagesWait) {
  Send("hello");
  Send("next");
  EXPECT_TRUE(Shows("an answer is on its way"));
  EXPECT_TRUE(Shows("> next"));
  control_->Press(Key::kDeleteToStart);
  Send("/set top-k 3");
  EXPECT_TRUE(Shows("top-k is now 3"));
  WaitForAnswer();
  EXPECT_EQ(chat_->conversation().turns().size(), 1u);
  // The answer stands above what came in between.
  const std::string seen = Seen();
  EXPECT_LT(seen.find(WrapText(chat_->conversation().turns()[0].answer, 77)[0]),
            seen.find("an answer is on its way"));
}

TEST_F(Control, EscapeStopsAndWhatThereIsCounts) {
  Send("hello");
  control_->Press(Key::kEscape);
  WaitForAnswer();
  EXPECT_TRUE(chat_->conversation().turns()[0].answered);
  EXPECT_FALSE(control_->ended());
}

TEST_F(Control, RegenerateGivesAnotherAnswerInItsPlace) {
  Send("/set temperature 1");
  Send("hello");
  WaitForAnswer();
  const std::string first = chat_->conversation().turns()[0].answer;
  Send("/regen");
  WaitForAnswer();
  ASSERT_EQ(chat_->conversation().turns().size(), 1u);
  const std::string second = chat_->conversation().turns()[0].answer;
  EXPECT_NE(first, second);
  EXPECT_FALSE(Shows(WrapText(first, 77)[0]));
  EXPECT_TRUE(Shows(WrapText(second, 77)[0]));
}

TEST_F(Control, AMessageBeyondTheContextIsKeptForChanging) {
  std::string words;
  for (int i = 0; i < 600; ++i) words += "word ";
  Send(words);
  EXPECT_TRUE(Shows(" 512 ")) << Seen();
  EXPECT_TRUE(chat_->conversation().turns().empty());
  EXPECT_FALSE(chat_->answering());
  control_->Press(Key::kDeleteToStart);
  Send("hello");
  EXPECT_TRUE(chat_->answering());
}

TEST_F(Control, AWrongCommandComesBackWithUp) {
  Send("/nonsense");
  EXPECT_TRUE(Shows("/nonsense: no such command"));
  EXPECT_TRUE(Shows("\n> \n"));
  control_->Press(Key::kUp);
  EXPECT_TRUE(Shows("\n> /nonsense\n"));
}

TEST_F(Control, WhatTheTemplateRefusesIsShownAndForgotten) {
  Begin(
      "{% for m in messages %}{% if m.role == 'system' %}"
      "{{ raise_exception('no system messages here') }}{% endif %}"
      "{{ m.content }}{% endfor %}");
  Send("/system Be brief.");
  Send("hello");
  EXPECT_TRUE(Shows("no system messages here"));
  EXPECT_TRUE(chat_->conversation().turns().empty());
  control_->Press(Key::kDeleteToStart);
  Send("/system -");
  Send("hello");
  EXPECT_TRUE(chat_->answering());
  WaitForAnswer();
}

TEST_F(Control, AConversationIsLoadedInPlaceOfTheOneThatIsThere) {
  Send("hello");
  WaitForAnswer();
  file_ = R"({"messages": [{"role": "user", "content": "from before"},
              {"role": "assistant", "content": "and its answer"}]})";
  Send("/load chat.json");
  EXPECT_TRUE(Shows("from before"));
  EXPECT_TRUE(Shows("and its answer"));
  EXPECT_TRUE(Shows("loaded: chat.json"));
  EXPECT_FALSE(Shows("hello"));
  EXPECT_EQ(chat_->conversation().turns().size(), 1u);
  file_ = "no JSON";
  Send("/load chat.json");
  EXPECT_TRUE(Shows("/load: chat.json: no conversation"));
  Send("/load none");
  EXPECT_TRUE(Shows("none: no such file"));
  EXPECT_EQ(chat_->conversation().turns().size(), 1u) << "nothing was done";
}

TEST_F(Control, TheSystemMessageMayBeAFile) {
  file_ = "Be brief.\nBe kind.\n";
  Send("/system-file system.txt");
  EXPECT_EQ(chat_->conversation().system(), "Be brief.\nBe kind.");
  file_ = "\n";
  Send("/system-file system.txt");
  EXPECT_TRUE(Shows("system.txt: is empty"));
  EXPECT_EQ(chat_->conversation().system(), "Be brief.\nBe kind.");
}

TEST_F(Control, WaysToLeave) {
  control_->Press(Key::kText, "x");
  control_->Press(Key::kEndOfInput);
  EXPECT_FALSE(control_->ended());
  control_->Press(Key::kBackspace);
  control_->Press(Key::kEndOfInput);
  EXPECT_TRUE(control_->ended());
  EXPECT_EQ(control_->exit_code(), 0);
  control_->Press(Key::kInterrupt);
  EXPECT_EQ(control_->exit_code(), 130);
}

TEST_F(Control, LeavingAMessageThatWasNotSentIsAskedTwice) {
  control_->Press(Key::kText, "a draft");
  control_->Press(Key::kInterrupt);
  EXPECT_FALSE(control_->ended());
  EXPECT_TRUE(Shows("Ctrl-C again leaves"));
  EXPECT_TRUE(Shows("a draft"));
  control_->Press(Key::kText, "!");
  control_->Press(Key::kInterrupt);
  EXPECT_FALSE(control_->ended()) << "another key takes it back";
  control_->Press(Key::kInterrupt);
  EXPECT_TRUE(control_->ended());
  EXPECT_EQ(control_->exit_code(), 130);
}

TEST_F(Control, WhereEveryMessageFailedTheExitCodeIsOne) {
  Begin("{{ raise_exception('no') }}");
  Send("hello");
  EXPECT_TRUE(Shows("no"));
  control_->Press(Key::kDeleteToStart);
  control_->Press(Key::kEndOfInput);
  EXPECT_TRUE(control_->ended());
  EXPECT_EQ(control_->exit_code(), 1);
}

TEST_F(Control, AMessageThatIsTooLongIsLeftOutWhole) {
  control_->Press(Key::kText, std::string(KeyReader::kMostPasteBytes + 1, 'x'));
  control_->Press(Key::kLog);
  EXPECT_TRUE(Shows("what was entered last was left out"));
  EXPECT_FALSE(Shows("xxx"));
}

}  // namespace
}  // namespace weft::chat
