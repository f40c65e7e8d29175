// Ctrl-C ends the process with 130, a request to terminate with 143, a terminal
// that is gone with 129, cleanly.
//
// By default at once: temporary files are removed and nothing else needs
// cleaning. What generates or serves is asked to stop, so that what was begun
// is finished in form; a second Ctrl-C does not wait for it.
#pragma once

#include <string>

namespace weft {

// Once, at the start of main. Also: writing to a closed pipe or beyond the
// limit of a file's size is an error and no signal, and so is, with a line of
// its own, reading from a mapped file that was cut off.
void InstallSignals();

// From now on what asks the process to end is left alone: another process gets
// it, too, and ends this one in form.
void LeaveEndToOthers();

// Whether Ctrl-C was pressed.
bool Interrupted();

// While this lives, the first signal that would end the process only makes
// Interrupted() true. One at a time.
class DeferInterrupt {
 public:
  DeferInterrupt();
  ~DeferInterrupt();
  DeferInterrupt(const DeferInterrupt&) = delete;
  DeferInterrupt& operator=(const DeferInterrupt&) = delete;
};

// While this lives, the first signal that would end the process is kept for
// Wait. One at a time.
class WaitForInterrupt {
 public:
  WaitForInterrupt();
  ~WaitForInterrupt();
  WaitForInterrupt(const WaitForInterrupt&) = delete;
  WaitForInterrupt& operator=(const WaitForInterrupt&) = delete;

  // Returns when it comes, with its number; at once if it has come.
  int Wait();

 private:
  int ends_[2];  // of a pipe that the handler writes to
};

}  // namespace weft
