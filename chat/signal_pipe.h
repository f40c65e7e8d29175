// Signals as bytes in a pipe, for a loop that waits in poll.
#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

namespace weft::chat {

// While this lives, these signals do nothing but make fd() readable; then they
// do what they did before. One at a time.
class SignalPipe {
 public:
  explicit SignalPipe(std::initializer_list<int> signals);
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int fd() const { return ends_[0]; }  // -1 if there could be no pipe
  // The next signal's number, 0 if there is none; never waits.
  int Take();

 private:
  int ends_[2];
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace weft::chat
