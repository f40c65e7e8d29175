#include "chat/terminal.h"

#include <ncursesw/curses.h>
#include <ncursesw/term.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

// term.h makes macros of common words.
#undef columns
#undef lines

namespace weft::chat {
namespace {

constexpr char kPasteOn[] = "\033[?2004h";
constexpr char kPasteOff[] = "\033[?2004l";
std::wstring ToWide(const std::string& text) {
  std::wstring wide(text.size(), L'\0');
  const size_t count = std::mbstowcs(wide.data(), text.c_str(), text.size());
  wide.resize(count == static_cast<size_t>(-1) ? 0 : count);
  return wide;
}

attr_t Attributes(Style style) {
  switch (style) {
    case Style::kPlain:
      return A_NORMAL;
    case Style::kBar:
      return A_REVERSE;
    case Style::kUser:
      return A_BOLD | COLOR_PAIR(1);
    case Style::kAssistant:
      return A_BOLD | COLOR_PAIR(2);
    case Style::kNotice:
      return COLOR_PAIR(3);
    case Style::kError:
      return COLOR_PAIR(4);
    case Style::kFaint:
      return A_DIM;
  }
  return A_NORMAL;
}

void UseColours() {
  const char* no_colour = std::getenv("NO_COLOR");
  if ((no_colour != nullptr && *no_colour != '\0') || !has_colors()) return;
  start_color();
  use_default_colors();
  init_pair(1, COLOR_GREEN, -1);
  init_pair(2, COLOR_CYAN, -1);
  init_pair(3, COLOR_YELLOW, -1);
  init_pair(4, COLOR_RED, -1);
}

// What a fault does to the terminal, prepared: a handler may call little.
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
constexpr int kFaultCount = std::size(kFaults);
struct sigaction g_before[kFaultCount];
termios g_modes;
char g_restore[256];
size_t g_restore_bytes = 0;

void OnFault(int signal) {
  const ssize_t written = write(STDOUT_FILENO, g_restore, g_restore_bytes);
  static_cast<void>(written);
  tcsetattr(STDIN_FILENO, TCSANOW, &g_modes);
  for (int i = 0; i < kFaultCount; ++i) {
    if (kFaults[i] == signal) sigaction(signal, &g_before[i], nullptr);
  }
  raise(signal);  // when this handler returns, as the one before wants it
}

// Terminal capabilities that take nothing, as the terminal wants them.
void PrepareFaults() {
  std::string restore = kPasteOff;
  for (const char* name : {"sgr0", "cnorm", "rmcup"}) {
    const char* capability = tigetstr(const_cast<char*>(name));
    if (capability != nullptr && capability != reinterpret_cast<char*>(-1)) {
      restore += capability;
    }
  }
  g_restore_bytes = std::min(restore.size(), sizeof(g_restore));
  std::memcpy(g_restore, restore.data(), g_restore_bytes);
  for (int i = 0; i < kFaultCount; ++i) {
    struct sigaction action = {};
    action.sa_handler = OnFault;
    sigaction(kFaults[i], &action, &g_before[i]);
  }
}

// Terminals whose own descriptions are often missing, and what they understand.
const struct {
  const char* prefix;
  const char* description;
} kAlike[] = {
    {"alacritty", "xterm-256color"},
    {"foot", "xterm-256color"},
    {"wezterm", "xterm-256color"},
    {"xterm", "xterm-256color"},
    {"screen", "screen"},
    {"tmux", "screen"},
};

bool OpenScreen(const std::string& name) {
  if (newterm(nullptr, stdout, stdin) != nullptr) return true;
  for (const auto& alike : kAlike) {
    if (absl::StartsWith(name, alike.prefix) &&
        newterm(alike.description, stdout, stdin) != nullptr) {
      return true;
    }
  }
  return false;
}

void Tell(const char* sequence) {
  putp(sequence);
  std::fflush(stdout);
}

void EnterModes() {
  raw();  // Ctrl-C and its like come as keys
  noecho();
  nonl();  // Enter and Ctrl-J are two keys
  Tell(kPasteOn);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Terminal>> Terminal::Open() {
  tcgetattr(STDIN_FILENO, &g_modes);
  const char* name = std::getenv("TERM");
  if (!OpenScreen(name == nullptr ? "" : name)) {
    return absl::UnavailableError(absl::StrCat(
        "terminal: ", name == nullptr ? "" : name,
        ": its description is not installed: plain lines are used (see TERM)"));
  }
  std::unique_ptr<Terminal> terminal(new Terminal);
  UseColours();
  EnterModes();
  PrepareFaults();
  return terminal;
}

Terminal::~Terminal() {
  Tell(kPasteOff);
  endwin();
  for (int i = 0; i < kFaultCount; ++i) {
    sigaction(kFaults[i], &g_before[i], nullptr);
  }
}

int Terminal::columns() const { return std::max(getmaxx(stdscr), 1); }
int Terminal::rows() const { return std::max(getmaxy(stdscr), 1); }

void Terminal::Resize() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 ||
      size.ws_col == 0) {
    return;
  }
  resizeterm(size.ws_row, size.ws_col);
  clearok(stdscr, TRUE);
}

void Terminal::Show(const Frame& frame) {
  erase();
  for (size_t row = 0; row < frame.rows.size(); ++row) {
    move(static_cast<int>(row), 0);
    for (const Span& span : frame.rows[row]) {
      const std::wstring text = ToWide(span.text);
      attrset(Attributes(span.style));
      addnwstr(text.data(), static_cast<int>(text.size()));
    }
  }
  attrset(A_NORMAL);
  move(frame.cursor_row, frame.cursor_column);
  refresh();
}

void Terminal::Suspend() {
  Tell(kPasteOff);
  endwin();
  raise(SIGSTOP);
  Resume();
}

void Terminal::Resume() {
  reset_prog_mode();
  Tell(kPasteOn);
  Resize();
}

bool Terminal::Read() {
  char bytes[65536];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count > 0) {
    keys_.Push(absl::string_view(bytes, count),
               std::chrono::steady_clock::now());
    return true;
  }
  return count < 0 && (errno == EINTR || errno == EAGAIN);
}

std::optional<KeyPress> Terminal::Next() {
  for (;;) {
    std::optional<KeyPress> press =
        keys_.Next(std::chrono::steady_clock::now());
    if (!press) return std::nullopt;
    if (press->key == Key::kSuspend) {
      Suspend();
    } else if (press->key == Key::kRedraw) {
      clearok(stdscr, TRUE);  // what other programs wrote goes
    } else {
      return press;
    }
  }
}

absl::Duration Terminal::Wait() const {
  const std::optional<KeyReader::Time> deadline = keys_.deadline();
  if (!deadline) return absl::InfiniteDuration();
  return std::max(
      absl::FromChrono(*deadline - std::chrono::steady_clock::now()),
      absl::ZeroDuration());
}

}  // namespace weft::chat
