#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/output_file.h"
#include "cli/command.h"

namespace weft {
namespace {

std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_deferred{false};
std::atomic<int> g_waiter{-1};

// Only what may be called in a signal handler.
void OnSignal(int signal) {
  const bool again = g_interrupted.exchange(true);
  if (g_deferred.load() && !again) return;
  if (const int waiter = g_waiter.load(); waiter >= 0 && !again) {
    const char number = static_cast<char>(signal);
    const ssize_t written = write(waiter, &number, 1);
    static_cast<void>(written);
    return;
  }
  RemoveTemporaryFiles();
  if (isatty(STDERR_FILENO) != 0) {
    // Behind what a progress bar left.
    const ssize_t written = write(STDERR_FILENO, "\n", 1);
    static_cast<void>(written);
  }
  _exit(signal == SIGINT ? kExitInterrupted : 128 + signal);
}

// Reading a mapped file beyond where somebody cut it off in the meantime.
void OnBusError(int) {
  RemoveTemporaryFiles();
  constexpr char kMessage[] =
      "weft: a file that is in use was cut off: the model or plan: do not "
      "write to it meanwhile, or copy it first\n";
  const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  static_cast<void>(written);
  _exit(kExitFailure);
}

}  // namespace

void InstallSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hang_up = {};
  sigaction(SIGHUP, nullptr, &hang_up);
  // Under nohup it stays ignored.
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = OnBusError;
  sigaction(SIGBUS, &action, nullptr);
  // Errors of writing, which are told, instead of signals.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void LeaveEndToOthers() {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
}

bool Interrupted() { return g_interrupted.load(); }

DeferInterrupt::DeferInterrupt() { g_deferred = true; }
DeferInterrupt::~DeferInterrupt() { g_deferred = false; }

WaitForInterrupt::WaitForInterrupt() : ends_{-1, -1} {
  if (pipe2(ends_, O_CLOEXEC) == 0) g_waiter = ends_[1];
}

WaitForInterrupt::~WaitForInterrupt() {
  g_waiter = -1;
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

int WaitForInterrupt::Wait() {
  char number = SIGTERM;
  while (read(ends_[0], &number, 1) < 0 && errno == EINTR) {
  }
  return number;
}

}  // namespace weft
