#include "chat/screen_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "chat/terminal_text.h"
#include "runtime/machine/memory.h"
#include "text/printable.h"

namespace weft::chat {
namespace {

constexpr size_t kMostLogLines = 1000;
// Of one message: as much as line mode takes.
constexpr size_t kMostMessageBytes = size_t{1} << 20;
constexpr int kInterrupted = 130;

std::string Count(double number) {
  const char* const units[] = {"", " k", " M", " G"};
  int unit = 0;
  for (; number >= 1000 && unit < 3; ++unit) number /= 1000;
  return unit == 0 ? absl::StrFormat("%.0f", number)
                   : absl::StrFormat("%.1f%s", number, units[unit]);
}

std::string ModelName(const ModelInfo& model) {
  return Printable(model.name.empty() ? model.architecture : model.name);
}

}  // namespace

ScreenControl::ScreenControl(Chat* chat,
                             const std::vector<std::string>& warnings)
    : chat_(chat),
      transcript_(ModelName(chat->scheduler().engine().plan().model)) {
  const Engine& engine = chat->scheduler().engine();
  Log(absl::StrFormat("loaded in %.3f s, %d threads, template: %s",
                      engine.load_seconds(), engine.threads(),
                      chat->chat_template().name()));
  transcript_.Add(Transcript::kNotice,
                  "Enter sends · Alt-Enter: new line · Esc stops · F2: log · "
                  "/help · /quit");
  for (const std::string& warning : warnings) {
    transcript_.Add(Transcript::kNotice, Printable(warning));
    Log(warning);
  }
}

void ScreenControl::Press(Key key, absl::string_view text) {
  const bool asked = std::exchange(asked_to_leave_, false);
  switch (key) {
    case Key::kText: {
      const std::string printable = Printable(text);
      if (editor_.text().size() + printable.size() <= kMostMessageBytes) {
        editor_.Insert(printable);
      } else {
        Log("the message is too long: what was entered last was left out");
      }
      break;
    }
    case Key::kEnter:
      Send();
      break;
    case Key::kNewLine:
      editor_.Insert("\n");
      break;
    case Key::kEscape:
      chat_->Stop();
      break;
    case Key::kInterrupt:
      if (chat_->answering()) {
        chat_->Stop();
      } else if (asked || editor_.text().empty()) {
        Leave(kInterrupted);
      } else {
        // What was typed would be lost.
        asked_to_leave_ = true;
        transcript_.Add(Transcript::kNotice,
                        "Ctrl-C again leaves, without what you have typed");
      }
      break;
    case Key::kEndOfInput:
      if (editor_.text().empty()) {
        Leave(chat_->only_failed() ? 1 : 0);
      } else {
        editor_.Delete();
      }
      break;
    case Key::kSuspend:
    case Key::kRedraw:
      break;  // the terminal's affair
    case Key::kBackspace:
      editor_.Backspace();
      break;
    case Key::kDelete:
      editor_.Delete();
      break;
    case Key::kDeleteWord:
      editor_.DeleteWord();
      break;
    case Key::kDeleteToStart:
      editor_.DeleteToLineStart();
      break;
    case Key::kDeleteToEnd:
      editor_.DeleteToLineEnd();
      break;
    case Key::kLeft:
      editor_.Left();
      break;
    case Key::kRight:
      editor_.Right();
      break;
    case Key::kWordLeft:
      editor_.WordLeft();
      break;
    case Key::kWordRight:
      editor_.WordRight();
      break;
    case Key::kUp:
      editor_.Up();
      break;
    case Key::kDown:
      editor_.Down();
      break;
    case Key::kHome:
      editor_.LineStart();
      break;
    case Key::kEnd:
      editor_.LineEnd();
      break;
    case Key::kPageUp:
      scroll_.Move(-std::max(scroll_.visible - 1, 1));
      break;
    case Key::kPageDown:
      scroll_.Move(std::max(scroll_.visible - 1, 1));
      break;
    case Key::kLog:
      show_log_ = !show_log_;
      break;
  }
}

void ScreenControl::Send() {
  const Reply reply = chat_->Enter(editor_.text());
  scroll_.follow = true;
  // A message that was not taken can be changed or sent again later; a command
  // comes back with Up.
  const absl::string_view entered = editor_.text();
  const bool command =
      absl::StartsWith(entered, "/") && !absl::StartsWith(entered, "//");
  if (!reply.failed || command) editor_.Take();
  if (reply.reset) transcript_.Clear();
  if (reply.regenerate) {
    transcript_.RemoveAnswer();
  } else if (reply.asked) {
    transcript_.Add(Transcript::kUser,
                    Printable(chat_->conversation().turns().back().message));
  }
  for (const std::string& notice : reply.notices) {
    transcript_.Add(reply.failed ? Transcript::kError : Transcript::kNotice,
                    Printable(notice));
  }
  if (reply.asked) transcript_.Add(Transcript::kAssistant, "");
  if (reply.toggle_log) show_log_ = !show_log_;
  if (reply.quit) Leave(chat_->only_failed() ? 1 : 0);
}

void ScreenControl::Leave(int exit_code) {
  chat_->Stop();
  ended_ = true;
  exit_code_ = exit_code;
}

void ScreenControl::TakeNews() {
  const News news = chat_->Take();
  transcript_.Append(Printable(news.text));
  for (const std::string& notice : news.notices) {
    transcript_.Add(news.failed ? Transcript::kError : Transcript::kNotice,
                    Printable(notice));
  }
  if (!news.finished) return;
  const Speed& speed = chat_->speed();
  Log(absl::StrFormat(
      "prompt %d tokens (%d cached), first after %.3f s; answer %d at %.1f/s, "
      "guessed right %d of %d",
      speed.prompt_tokens, speed.cached_tokens, speed.first_token_seconds,
      speed.answer_tokens, speed.tokens_per_second, speed.accepted_tokens,
      speed.drafted_tokens));
}

void ScreenControl::Log(std::string line) {
  if (log_.size() == kMostLogLines) log_.erase(log_.begin());
  log_.push_back(absl::StrCat(
      absl::FormatTime("%H:%M:%S ", absl::Now(), absl::LocalTimeZone()),
      Printable(line)));
}

ScreenContent ScreenControl::Content() const {
  const Scheduler& scheduler = chat_->scheduler();
  const ModelInfo& model = scheduler.engine().plan().model;
  const Speed& speed = chat_->speed();
  ScreenContent content;
  content.title = ModelName(model);
  content.title_details =
      absl::StrCat(Printable(model.architecture), " · ",
                   Count(static_cast<double>(model.parameters)),
                   " parameters · context ", scheduler.capacity());
  content.settings = DescribeShortly(chat_->settings());
  if (const std::string& system = chat_->conversation().system();
      !system.empty()) {
    absl::StrAppend(&content.settings, " · system: ", Printable(system));
  }
  const double rate = speed.tokens_per_second;
  if (rate > 0) {
    content.numbers = {
        absl::StrFormat(rate < 100 ? "%.1f tokens/s" : "%.0f tokens/s", rate),
        absl::StrFormat("%.2f ms/token", 1000 / rate)};
  }
  content.numbers.push_back(absl::StrCat("context ", chat_->context_used(), "/",
                                         scheduler.capacity()));
  content.numbers.push_back(
      absl::StrCat("memory ", PeakResidentBytes() >> 20, " MiB"));
  content.state = !chat_->answering()        ? "ready"
                  : speed.answer_tokens == 0 ? "reading · Esc stops"
                  : chat_->reasoning()       ? "reasoning · Esc stops"
                                             : "writing · Esc stops";
  content.log = log_;
  content.show_log = show_log_;
  return content;
}

Frame ScreenControl::Draw(int columns, int rows) {
  return LayOut(Content(), editor_, &transcript_, &scroll_, columns, rows);
}

}  // namespace weft::chat
