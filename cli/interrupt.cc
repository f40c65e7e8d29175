#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/output_path.h"
#include "cli/command.h"

namespace weft {
namespace {

std::atomic<bool> g_interrupted{false};
std::atomic<Engine*> g_engine{nullptr};
std::atomic<const char*> g_temporary{nullptr};

// Only what may be called in a signal handler.
void OnSignal(int signal) {
  const bool again = g_interrupted.exchange(true);
  if (Engine* engine = g_engine.load(); engine != nullptr && !again) {
    engine->Cancel();
    return;
  }
  if (const char* path = g_temporary.load(); path != nullptr) unlink(path);
  if (isatty(STDERR_FILENO) != 0) {
    // Behind what a progress bar left.
    const ssize_t written = write(STDERR_FILENO, "\n", 1);
    static_cast<void>(written);
  }
  _exit(signal == SIGTERM ? kExitTerminated : kExitInterrupted);
}

}  // namespace

void InstallSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool Interrupted() { return g_interrupted.load(); }

CancelOnInterrupt::CancelOnInterrupt(Engine* engine) { g_engine = engine; }
CancelOnInterrupt::~CancelOnInterrupt() { g_engine = nullptr; }

RemoveOnInterrupt::RemoveOnInterrupt(const std::string& path) {
  const absl::StatusOr<OutputPath> place = ResolveOutput(path);
  // What cannot be written is told by the writer.
  if (!place.ok() || place->special) return;
  temporary_ = place->temporary;
  g_temporary = temporary_.c_str();
}
RemoveOnInterrupt::~RemoveOnInterrupt() { g_temporary = nullptr; }

}  // namespace weft
