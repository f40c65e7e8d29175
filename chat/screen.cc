#include "chat/screen.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "base/status.h"
#include "chat/screen_control.h"
#include "chat/signal_pipe.h"
#include "chat/terminal.h"

namespace weft::chat {
namespace {

// The answer grows on the screen at most so often: drawing costs time, too.
constexpr absl::Duration kBetweenDraws = absl::Milliseconds(33);
constexpr absl::Duration kTick = absl::Milliseconds(1);  // of poll

// Whether there is more to take.
struct Sources {
  bool signals, news, keys, gone;
};

Sources Wait(const SignalPipe& signals, const Chat& chat,
             absl::Duration longest) {
  pollfd fds[] = {{signals.fd(), POLLIN, 0},
                  {chat.fd(), POLLIN, 0},
                  {STDIN_FILENO, POLLIN, 0}};
  const int milliseconds = longest == absl::InfiniteDuration()
                               ? -1
                               : static_cast<int>(absl::ToInt64Milliseconds(
                                     absl::Ceil(longest, kTick)));
  if (poll(fds, 3, milliseconds) < 0) return {};
  return {fds[0].revents != 0, fds[1].revents != 0,
          (fds[2].revents & POLLIN) != 0,
          (fds[2].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0};
}

}  // namespace

absl::StatusOr<int> RunScreen(Chat& chat,
                              const std::vector<std::string>& warnings) {
  // First, so that ncurses leaves these signals alone.
  SignalPipe signals({SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT});
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Terminal> terminal, Terminal::Open());
  ScreenControl control(&chat, warnings);
  absl::Time drawn = absl::InfinitePast();
  bool changed = true, at_once = true;
  while (!control.ended()) {
    const absl::Duration since = absl::Now() - drawn;
    if (changed && (at_once || since >= kBetweenDraws)) {
      terminal->Show(control.Draw(terminal->columns(), terminal->rows()));
      drawn = absl::Now();
      changed = at_once = false;
    }
    const absl::Duration draw =
        changed ? kBetweenDraws - since : absl::InfiniteDuration();
    Sources sources = Wait(signals, chat, std::min(draw, terminal->Wait()));
    if (sources.news) {
      control.TakeNews();
      changed = true;
      at_once = at_once || !chat.answering();
    }
    if (sources.keys && !terminal->Read()) sources.gone = true;
    while (!control.ended()) {
      const std::optional<KeyPress> press = terminal->Next();
      if (!press) break;
      control.Press(press->key, press->text);
      changed = at_once = true;
    }
    if (sources.keys) changed = at_once = true;  // a key may ask for no more
    while (const int signal = signals.Take()) {
      switch (signal) {
        case SIGWINCH:
          terminal->Resize();
          break;
        case SIGTSTP:
          terminal->Suspend();
          break;
        case SIGCONT:
          terminal->Resume();
          break;
        default:
          chat.Stop();
          return 128 + signal;
      }
      changed = at_once = true;
    }
    if (sources.gone) {
      chat.Stop();
      return 128 + SIGHUP;
    }
  }
  return control.exit_code();
}

}  // namespace weft::chat
