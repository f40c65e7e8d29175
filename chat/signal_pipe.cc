#include "chat/signal_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace weft::chat {
namespace {

std::atomic<int> g_pipe{-1};

void OnSignal(int signal) {
  const int saved = errno;
  const char number = static_cast<char>(signal);
  const ssize_t written = write(g_pipe.load(), &number, 1);
  static_cast<void>(written);
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe(std::initializer_list<int> signals) : ends_{-1, -1} {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  g_pipe = ends_[1];
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    // Under nohup it stays ignored.
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
    before_.emplace_back(signal, before);
  }
}

SignalPipe::~SignalPipe() {
  for (const auto& [signal, action] : before_) {
    sigaction(signal, &action, nullptr);
  }
  g_pipe = -1;
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

int SignalPipe::Take() {
  char number = 0;
  return read(ends_[0], &number, 1) == 1 ? number : 0;
}

}  // namespace weft::chat
