// weft chat: line mode through pipes, and the screen in tmux, where that is
// installed (Debian's package tmux).
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "chat/terminal_text.h"
#include "cli/filter_process.h"
#include "runtime/api/completion.h"
#include "tests/e2e/weft.h"
#include "text/chat_template.h"

namespace weft {
namespace {

// A model that is not done with an answer before it is stopped.
const std::string& EndlessModel() {
  static const std::string* const kPath = [] {
    const std::string shape = TemporaryPath("shape.json");
    WriteTextFile(shape, R"({"embedding_length": 512, "block_count": 6,
        "feed_forward_length": 2048, "head_count": 8, "head_count_kv": 1,
        "vocabulary_size": 512, "context_length": 60000})");
    auto* path = new std::string(TemporaryPath("endless.gguf"));
    WeftOut(
        {"synth", "--shape", shape, "--type", "Q8_0", "--quiet", "-o", *path});
    return path;
  }();
  return *kPath;
}

std::string EndlessAnswer() {
  return EndlessModel() + " --temperature 0 -n 60000 --context 60000";
}

// What the scheduler answers to these messages, one after the other, greedily.
std::vector<std::string> Answers(const std::vector<std::string>& messages,
                                 const std::string& system = "") {
  std::vector<std::string> answers;
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Load("", {});
  EXPECT_TRUE(engine.ok()) << engine.status();
  const ChatTemplate chat_template =
      *ChatTemplate::ForVocabulary((*engine)->plan().vocabulary, nullptr);
  const std::unique_ptr<Scheduler> scheduler =
      *Scheduler::Create(*std::move(engine), {});
  ChatRequest chat;
  chat.messages = nlohmann::ordered_json::array();
  const auto add = [&](const char* role, const std::string& content) {
    chat.messages.push_back({{"role", role}, {"content", content}});
  };
  if (!system.empty()) add("system", system);
  for (const std::string& message : messages) {
    add("user", message);
    Request request;
    request.prompt_tokens =
        *scheduler->tokenizer().EncodeSegments(*chat_template.Render(chat), {});
    request.sampling.temperature = 0;
    request.max_tokens = 12;
    const absl::StatusOr<Completion> done =
        Complete(*scheduler, std::move(request));
    EXPECT_TRUE(done.ok()) << done.status();
    answers.emplace_back(absl::StripAsciiWhitespace(done->choices[0].text));
    add("assistant", answers.back());
  }
  return answers;
}

RunResult Chat(const std::string& input, std::vector<std::string> more = {},
               RunOptions options = {}) {
  options.input = input;
  std::vector<std::string> arguments = {"chat", "--temperature", "0", "-n",
                                        "12"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Weft(arguments, options);
}

TEST(ChatLines, AnswersAreThoseOfTheScheduler) {
  const std::vector<std::string> messages = {"It is a truth", "Why, Emma?"};
  const std::vector<std::string> answers = Answers(messages);
  const RunResult result = Chat("It is a truth\nWhy, Emma?\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, absl::StrCat(answers[0], "\n", answers[1], "\n"));
  EXPECT_NE(answers[0], "");
}

TEST(ChatLines, TheSystemMessageIsSent) {
  const std::string system = "A letter to Mr. Darcy.";
  const std::string answer = Answers({"hello"}, system)[0];
  EXPECT_NE(answer, Answers({"hello"})[0]);
  EXPECT_EQ(Chat("hello\n", {"--system", system}).out, answer + "\n");
  EXPECT_EQ(Chat(absl::StrCat("/system ", system, "\nhello")).out,
            answer + "\n");
}

TEST(ChatLines, NoticesGoToStandardErrorUnlessQuiet) {
  RunResult result = Chat("hello\n");
  EXPECT_TRUE(absl::StrContains(result.err, "a default is used: plain"));
  EXPECT_TRUE(absl::StrContains(result.err, "cut off after 12 tokens"));
  EXPECT_EQ(result.err.find('\033'), std::string::npos);
  result = Chat("hello\n/regen now\n/set tokens 5\n", {"--quiet"});
  EXPECT_EQ(result.err,
            "weft: /regen: use it alone, without more words\n"
            "weft: tokens is now 5\n");
}

TEST(ChatLines, CommandsWork) {
  const std::string saved = TemporaryPath("chat.json");
  const RunResult result = Chat(absl::StrCat(
      "hello\n/regen\n/save ", saved,
      "\n/set top-k 7\n/set\n/set top-k x\n/nonsense\n/help\n/reset\n"
      "/regen\n/quit\nnever\n"));
  EXPECT_EQ(result.exit_code, 0);
  const std::string answer = Answers({"hello"})[0];
  EXPECT_EQ(result.out, absl::StrCat(answer, "\n", answer, "\n"));
  for (const char* line :
       {"weft: written: ", "weft: top-k is now 7\n", "top-k 7, top-p 0.9",
        "weft: /set: top-k: 'x' is not a number it takes\n",
        "weft: /nonsense: no such command", "/save FILE",
        "weft: /regen: nothing was said yet"}) {
    EXPECT_TRUE(absl::StrContains(result.err, line)) << line << result.err;
  }
  const nlohmann::json json = nlohmann::json::parse(ReadFile(saved));
  EXPECT_EQ(json["messages"].size(), 2u);
  EXPECT_EQ(json["messages"][1]["content"], answer);
}

TEST(ChatLines, SameSeedSameConversation) {
  const auto run = [](const char* seed) {
    return WeftOut({"chat", "--seed", seed, "-n", "20"}, [] {
      RunOptions options;
      options.input = "hello\nhello\n";
      return options;
    }());
  };
  EXPECT_EQ(run("3"), run("3"));
  EXPECT_NE(run("3"), run("4"));
}

TEST(ChatLines, TheOldestTurnsGoWhenTheContextIsFull) {
  std::string input;
  for (int i = 0; i < 12; ++i) input += "It is a truth universally known.\n";
  const RunResult result = Chat(input, {"--context", "128"});
  EXPECT_EQ(result.exit_code, 0);
  int answers = 0;
  for (absl::string_view line : absl::StrSplit(result.err, '\n')) {
    answers += absl::StrContains(line, "cut off after 12 tokens");
  }
  EXPECT_EQ(answers, 12) << result.err;
  EXPECT_TRUE(absl::StrContains(result.err, "the context is full: the oldest"))
      << result.err;
}

TEST(ChatLines, AMessageBeyondTheContextIsRefusedAndForgotten) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word ";
  const RunResult result = Chat(words + "\nhello\n", {"--context", "128"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, Answers({"hello"})[0] + "\n");
  EXPECT_TRUE(absl::StrContains(result.err, "128")) << result.err;
}

TEST(ChatLines, WhereEveryMessageFailsTheExitCodeIsOne) {
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word ";
  const std::vector<std::string> context = {"--context", "128"};
  EXPECT_EQ(Chat(words + "\n" + words, context).exit_code, 1);
  EXPECT_EQ(Chat(words + "\n/quit\n", context).exit_code, 1);
  EXPECT_EQ(Chat("hello\n" + words, context).exit_code, 0);
  EXPECT_EQ(Chat("/nonsense\n", context).exit_code, 0);
}

TEST(ChatLines, NothingToAnswerIsNoError) {
  EXPECT_EQ(Chat("\n  \n").out, "");
  EXPECT_EQ(Chat("\n").exit_code, 0);
}

TEST(ChatLines, CtrlCEndsTheAnswerThenTheChat) {
  RunOptions options;
  options.interrupt = true;
  options.input = "hello\nhello\nhello\n";
  const RunResult result = Weft({"chat", EndlessModel(), "--temperature", "0",
                                 "-n", "60000", "--context", "60000"},
                                options);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_TRUE(absl::StrContains(result.err, "stopped")) << result.err;
}

TEST(ChatLines, WrongUse) {
  ExpectError(Weft({"chat", "-n", "0"}), 2);
  ExpectError(Weft({"chat", "--context-overflow", "shift"}), 2);
  ExpectError(Weft({"chat", "--top-p", "7"}), 2);
  ExpectError(Weft({"chat", "no-such.gguf"}), 1);
}

// A terminal of its own for each test.
class ChatScreen : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    const absl::Status found = FilterThrough({"tmux", "-V"}, "").status();
    if (!found.ok()) {
      GTEST_SKIP() << "needs Debian's package tmux: " << found;
    }
    // Not in the test's own folder: the path of a socket must be short.
    char folder[] = "/tmp/weft-chat-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    sockets_ = folder;
  }

  void TearDown() override {
    Close();
    if (!sockets_.empty()) std::filesystem::remove_all(sockets_);
  }

  absl::StatusOr<std::string> Tmux(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {"env",
                                        "LC_ALL=C.UTF-8",
                                        absl::StrCat("TMUX_TMPDIR=", sockets_),
                                        "tmux",
                                        "-L",
                                        server_,
                                        "-f",
                                        "/dev/null"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return FilterThrough(command, "");
  }

  // A new terminal, with a server of its own: one that ends may still take
  // clients for a while.
  void Open(const std::string& command, int columns, int rows) {
    static int count = 0;
    Close();
    server_ = absl::StrCat(++count);
    const absl::Status started =
        Tmux({"new-session", "-d", "-x", absl::StrCat(columns), "-y",
              absl::StrCat(rows), command})
            .status();
    ASSERT_TRUE(started.ok()) << started;
  }
  void Close() {
    if (!server_.empty()) Tmux({"kill-server"}).IgnoreError();
    server_.clear();
  }

  // In a shell, so that what is left on the terminal can be seen.
  void Start(const std::string& arguments, int columns = 80, int rows = 24) {
    ASSERT_NO_FATAL_FAILURE(
        Open(absl::StrCat("echo before; OMP_WAIT_POLICY=passive cli/weft chat ",
                          arguments, "; echo exit code $?; stty -a; sleep 600"),
             columns, rows));
    WaitFor("ready");
  }

  void Type(const std::string& text) {
    EXPECT_TRUE(Tmux({"send-keys", "-l", "--", text}).ok());
  }
  void Press(const std::string& key) {
    EXPECT_TRUE(Tmux({"send-keys", key}).ok());
  }

  std::string Seen() {
    const absl::StatusOr<std::string> text = Tmux({"capture-pane", "-p"});
    return text.ok() ? *text : std::string(text.status().message());
  }

  // Until the screen shows (or does not show) it.
  void WaitFor(const std::string& text, bool shown = true) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (absl::StrContains(Seen(), text) != shown) {
      ASSERT_LT(absl::Now(), deadline)
          << (shown ? "never: " : "always: ") << text << "\n"
          << Seen();
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  // The only child of the shell in the terminal; 0 if there is none.
  pid_t ChatProcess() {
    const absl::StatusOr<std::string> shell =
        Tmux({"list-panes", "-F", "#{pane_pid}"});
    EXPECT_TRUE(shell.ok()) << shell.status();
    if (!shell.ok()) return 0;
    const absl::string_view id = absl::StripAsciiWhitespace(*shell);
    const std::string children =
        ReadFile(absl::StrCat("/proc/", id, "/task/", id, "/children"));
    pid_t child = 0;
    EXPECT_TRUE(absl::SimpleAtoi(children, &child)) << children;
    return child;
  }

  std::string sockets_;  // a folder
  std::string server_;
};

TEST_F(ChatScreen, AMessageIsAnswered) {
  Start("--temperature 0 -n 12", 100, 30);
  const std::string first = Seen();
  for (const char* text : {"Austen", "parameters", "context 512", "greedy",
                           "a default is used: plain", "\n>", "memory"}) {
    EXPECT_TRUE(absl::StrContains(first, text)) << text << "\n" << first;
  }
  Type("hello");
  WaitFor("> hello");
  Press("Enter");
  WaitFor("cut off after 12 tokens");
  const std::string answer = Answers({"hello"})[0];
  const std::string screen = Seen();
  EXPECT_TRUE(absl::StrContains(screen, "You\n  hello\n")) << screen;
  for (absl::string_view line : absl::StrSplit(answer, '\n')) {
    EXPECT_TRUE(absl::StrContains(screen, line)) << screen;
  }
  EXPECT_TRUE(absl::StrContains(screen, "ms/token")) << screen;
}

TEST_F(ChatScreen, TypingGoesOnDuringAnAnswerAndEscapeStopsIt) {
  Start(EndlessAnswer());
  Type("hello");
  Press("Enter");
  WaitFor("writing");
  Type("the next");
  WaitFor("> the next");
  EXPECT_TRUE(absl::StrContains(Seen(), "writing"));
  Press("Escape");
  WaitFor("stopped");
  WaitFor("ready");
  EXPECT_TRUE(absl::StrContains(Seen(), "> the next"));
}

TEST_F(ChatScreen, CommandsAndLog) {
  Start("--temperature 0 -n 12");
  Type("/help");
  Press("Enter");
  WaitFor("/save FILE");
  Type("/nonsense");
  Press("Enter");
  WaitFor("no such command");
  Press("Up");
  WaitFor("> /nonsense");
  Press("C-u");
  Type("/reset");
  Press("Enter");
  WaitFor("the conversation was forgotten");
  EXPECT_FALSE(absl::StrContains(Seen(), "/save FILE"));
  Press("F2");
  WaitFor("── log ─");
  WaitFor("loaded in");
  Press("F2");
  WaitFor("── log ─", false);
}

TEST_F(ChatScreen, MessagesOfSeveralLinesAndHistory) {
  Start("--temperature 0 -n 3");
  Type("one");
  Press("C-j");
  Type("two");
  Press("M-Enter");
  Type("日本 三");
  WaitFor("> one\n  two\n  日本 三");
  Press("Enter");
  WaitFor("You\n  one\n  two\n  日本 三");
  WaitFor("ready");
  Press("Up");
  WaitFor("> one\n  two\n  日本 三");
}

TEST_F(ChatScreen, KeysMoveTheCursor) {
  Start("--temperature 0 -n 3");
  Type("one three");
  Press("M-Left");
  Type("two ");
  Press("Home");
  Type("> ");
  Press("C-Right");
  Type("s");
  Press("End");
  Press("BSpace");
  WaitFor("> > ones two thre\n");
}

TEST_F(ChatScreen, APasteIsOneMessage) {
  Start("--temperature 0 -n 3");
  ASSERT_TRUE(Tmux({"set-buffer", "first\nsecond \033[31mred\n"}).ok());
  ASSERT_TRUE(Tmux({"paste-buffer", "-p"}).ok());
  WaitFor("> first\n  second");
  EXPECT_TRUE(absl::StrContains(Seen(), "ready"));
}

// As bytes, which tmux hands on as they are.
TEST_F(ChatScreen, NothingOfAPasteIsObeyed) {
  Start("--temperature 0 -n 3");
  for (const char* bytes : {"\033[200~first\n/quit\n\xFF\xE6", "\x97\x03",
                            "\x04\n/help\033[A\n", "last\033[201~"}) {
    ASSERT_TRUE(Tmux({"set-buffer", bytes}).ok());
    ASSERT_TRUE(Tmux({"paste-buffer", "-d"}).ok());
  }
  WaitFor("> first\n  /quit\n");
  WaitFor("  last\n");
  EXPECT_TRUE(absl::StrContains(Seen(), "  /help")) << Seen();
  EXPECT_TRUE(absl::StrContains(Seen(), "ready")) << Seen();
  EXPECT_FALSE(absl::StrContains(Seen(), "/save FILE")) << Seen();
}

// A model of random weights writes any byte, at a temperature.
TEST_F(ChatScreen, ControlCharactersOfTheModelDoNotReachTheTerminal) {
  const std::string sampling =
      "--temperature 1.5 --top-k 0 --top-p 1 --repeat-penalty 1 --seed 1 -n "
      "2000";
  std::vector<std::string> arguments = {"chat", EndlessModel()};
  for (absl::string_view word : absl::StrSplit(sampling, ' ')) {
    arguments.emplace_back(word);
  }
  RunOptions options;
  options.input = "hello\n";
  const std::string answer = WeftOut(arguments, options);
  ASSERT_TRUE(absl::StrContains(answer, "\033"));
  Start(absl::StrCat(EndlessModel(), " ", sampling));
  const std::string before = Seen();
  const std::string first_row = before.substr(0, before.find('\n'));
  Type("hello");
  Press("Enter");
  WaitFor("tokens/s");
  WaitFor("ready");
  const std::vector<std::string> rows = absl::StrSplit(Seen(), '\n');
  ASSERT_GE(rows.size(), 24u);
  EXPECT_EQ(rows[0], first_row);
  EXPECT_EQ(rows[22], ">");
  EXPECT_TRUE(absl::StrContains(rows[23], "ready"));
  // The answer's end, to the letter.
  ASSERT_TRUE(chat::UseUtf8Locale());
  const std::vector<std::string> lines =
      chat::WrapText(absl::StripAsciiWhitespace(answer), 77);
  ASSERT_GE(lines.size(), 8u);
  for (size_t i = lines.size() - 8; i < lines.size(); ++i) {
    EXPECT_TRUE(absl::StrContains(Seen(), lines[i])) << lines[i] << Seen();
  }
}

TEST_F(ChatScreen, ANewSizeIsLaidOutAnew) {
  Start("--temperature 0 -n 12", 90, 30);
  Type(
      "It is a truth universally acknowledged, that a single man in "
      "possession");
  Press("Enter");
  WaitFor("cut off");
  EXPECT_TRUE(absl::StrContains(Seen(), "that a single man in possession\n"));
  ASSERT_TRUE(Tmux({"resize-window", "-x", "40", "-y", "20"}).ok());
  WaitFor(
      "  It is a truth universally\n  acknowledged, that a single man in\n"
      "  possession\n");
  ASSERT_TRUE(Tmux({"resize-window", "-x", "90", "-y", "30"}).ok());
  WaitFor("that a single man in possession\n");
  ASSERT_TRUE(Tmux({"resize-window", "-x", "3", "-y", "2"}).ok());
  absl::SleepFor(absl::Milliseconds(200));
  ASSERT_TRUE(Tmux({"resize-window", "-x", "60", "-y", "20"}).ok());
  WaitFor("ready");
}

TEST_F(ChatScreen, LeavingRestoresTheTerminal) {
  Start("--temperature 0 -n 12");
  EXPECT_FALSE(absl::StrContains(Seen(), "before"));
  Type("/quit");
  Press("Enter");
  WaitFor("exit code 0");
  const std::string screen = Seen();
  EXPECT_TRUE(absl::StrContains(screen, "before")) << screen;
  EXPECT_TRUE(absl::StrContains(screen, " icanon ")) << screen;
  EXPECT_TRUE(absl::StrContains(screen, " echo ")) << screen;
}

TEST_F(ChatScreen, CtrlCStopsTheAnswerThenLeaves) {
  Start(EndlessAnswer());
  Type("hello");
  Press("Enter");
  WaitFor("writing");
  Press("C-c");
  WaitFor("stopped");
  WaitFor("ready");
  Press("C-c");
  WaitFor("exit code 130");
  EXPECT_TRUE(absl::StrContains(Seen(), " icanon "));
}

TEST_F(ChatScreen, SignalsAndFaultsRestoreTheTerminal) {
  for (const int number : {SIGTERM, SIGSEGV}) {
    SCOPED_TRACE(number);
    Start("--temperature 0 -n 12");
    const pid_t chat = ChatProcess();
    ASSERT_GT(chat, 0);
    ASSERT_EQ(kill(chat, number), 0);
    WaitFor(absl::StrCat("exit code ", 128 + number));
    const std::string screen = Seen();
    EXPECT_TRUE(absl::StrContains(screen, "before")) << screen;
    EXPECT_TRUE(absl::StrContains(screen, " icanon ")) << screen;
  }
}

TEST_F(ChatScreen, StoppedItGivesTheTerminalBackUntilItGoesOn) {
  Start("--temperature 0 -n 12");
  Type("half");
  WaitFor("> half");
  const pid_t chat = ChatProcess();
  ASSERT_GT(chat, 0);
  ASSERT_EQ(kill(chat, SIGTSTP), 0);
  WaitFor("before");
  WaitFor("ready", false);
  ASSERT_EQ(kill(chat, SIGCONT), 0);
  WaitFor("> half");
  Type(" and half");
  WaitFor("> half and half");
}

TEST_F(ChatScreen, ATerminalWithoutDescriptionGetsPlainLines) {
  ASSERT_NO_FATAL_FAILURE(Open(
      "TERM=no-such-terminal cli/weft chat --temperature 0 -n 12", 100, 24));
  WaitFor("plain lines are used");
  Type("hello");
  Press("Enter");
  WaitFor("cut off after 12 tokens");
}

TEST_F(ChatScreen, AWellKnownTerminalWithoutDescriptionGetsTheScreen) {
  ASSERT_NO_FATAL_FAILURE(Open("TERM=xterm-unheard-of cli/weft chat", 100, 24));
  WaitFor("ready");
}

TEST(Chat, OneMessageOnTheCommandLineIsAnswered) {
  RunOptions typed;
  typed.input = "Hello\n";
  const std::vector<std::string> greedy = {"chat", "--temperature", "0", "-n",
                                           "4"};
  std::vector<std::string> given = greedy;
  given.insert(given.end(), {"-p", "Hello"});
  EXPECT_EQ(WeftOut(given, typed), WeftOut(greedy, typed));
  // No command, whatever it looks like.
  EXPECT_NE(WeftOut({"chat", "-p", "/quit", "-n", "4"}), "");
}

}  // namespace
}  // namespace weft
