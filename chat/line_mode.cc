#include "chat/line_mode.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "chat/signal_pipe.h"
#include "text/utf8.h"

namespace weft::chat {
namespace {

// A line beyond this is refused rather than kept.
constexpr size_t kMostLineBytes = size_t{16} << 20;

// Lines of standard input as they come.
class Lines {
 public:
  // What there is now; call when standard input is readable.
  absl::Status Read() {
    char bytes[65536];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count > 0) {
      pending_.append(bytes, count);
    } else if (count == 0) {
      ended_ = true;
    } else if (errno != EINTR && errno != EAGAIN) {
      return absl::UnavailableError(
          absl::StrCat("standard input: ", std::strerror(errno)));
    }
    if (pending_.size() > kMostLineBytes &&
        pending_.find('\n') == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("standard input: a line of more than ", kMostLineBytes,
                       " bytes: send less at once"));
    }
    return absl::OkStatus();
  }

  // The next whole line; at the end of the input also one without newline.
  std::optional<std::string> Next() {
    const size_t end = pending_.find('\n');
    if (end == std::string::npos && (!ended_ || pending_.empty())) {
      return std::nullopt;
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end == std::string::npos ? end : end + 1);
    return line;
  }

  bool ended() const { return ended_; }
  void End() { ended_ = true; }

 private:
  std::string pending_;
  bool ended_ = false;
};

class LineMode {
 public:
  LineMode(Chat& chat, const LineModeOptions& options)
      : chat_(chat), options_(options), signals_({SIGINT, SIGTERM, SIGHUP}) {}

  absl::StatusOr<int> Run() {
    if (options_.message) {
      lines_.End();
      const Reply reply = chat_.Say(RepairUtf8(*options_.message));
      Notify(reply.notices, reply.failed || !reply.asked);
    }
    ShowPrompt();
    for (;;) {
      if (!chat_.answering()) {
        if (quit_signal_ != 0) return 128 + quit_signal_;
        std::optional<std::string> line = lines_.Next();
        if (line) {
          if (Enter(*line)) return ExitCode();
          if (!chat_.answering()) ShowPrompt();
          continue;
        }
        if (lines_.ended()) return ExitCode();
      }
      // Input waits while an answer is written.
      pollfd fds[] = {{signals_.fd(), POLLIN, 0},
                      {chat_.fd(), POLLIN, 0},
                      {chat_.answering() ? -1 : STDIN_FILENO, POLLIN, 0}};
      if (poll(fds, 3, -1) < 0 && errno != EINTR) {
        return absl::InternalError(
            absl::StrCat("poll: ", std::strerror(errno)));
      }
      if (fds[0].revents != 0) TakeSignals();
      if (fds[1].revents != 0) ShowNews();
      if (fds[2].revents != 0) {
        WEFT_RETURN_IF_ERROR(lines_.Read());
      }
      // A reader that has gone wants no more.
      if (!std::cout) return 0;
    }
  }

 private:
  int ExitCode() const { return chat_.only_failed() ? 1 : 0; }

  // Whether to leave.
  bool Enter(const std::string& line) {
    const Reply reply = chat_.Enter(RepairUtf8(line));
    // What was asked for is told even when quiet.
    Notify(reply.notices, reply.failed || !reply.asked);
    if (reply.toggle_log) Notify({"/log: only the screen has a log"}, true);
    return reply.quit;
  }

  void ShowNews() {
    const News news = chat_.Take();
    std::cout << news.text;
    if (news.finished) std::cout << "\n";
    std::cout << std::flush;
    if (!news.finished) return;
    Notify(news.notices, news.failed);
    ShowPrompt();
  }

  void TakeSignals() {
    while (const int signal = signals_.Take()) {
      // Somebody at a keyboard may go on after the first one.
      const bool only_stop = options_.prompt && signal == SIGINT &&
                             chat_.answering() && !stopped_answer_;
      stopped_answer_ = chat_.answering();
      chat_.Stop();
      if (!only_stop) quit_signal_ = signal;
    }
  }

  void Notify(const std::vector<std::string>& notices, bool needed) const {
    if (options_.quiet && !needed) return;
    for (const std::string& notice : notices) {
      std::cerr << "weft: " << notice << std::endl;
    }
  }

  void ShowPrompt() {
    stopped_answer_ = false;
    if (options_.prompt && !options_.quiet) std::cerr << "> " << std::flush;
  }

  Chat& chat_;
  const LineModeOptions options_;
  SignalPipe signals_;
  Lines lines_;
  bool stopped_answer_ = false;
  int quit_signal_ = 0;
};

}  // namespace

absl::StatusOr<int> RunLineMode(Chat& chat, const LineModeOptions& options) {
  const absl::StatusOr<int> code = LineMode(chat, options).Run();
  // Behind the last "> ".
  if (options.prompt && !options.quiet) std::cerr << std::endl;
  return code;
}

}  // namespace weft::chat
