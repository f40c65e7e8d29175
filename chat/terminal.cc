#include "chat/terminal.h"

#include <ncursesw/curses.h>
#include <ncursesw/term.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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
// Codes for what ncurses has no name for.
constexpr int kPasteBegin = KEY_MAX + 1;
constexpr int kPasteEnd = KEY_MAX + 2;
constexpr int kByWordLeft = KEY_MAX + 3;
constexpr int kByWordRight = KEY_MAX + 4;
constexpr int kEscapeMilliseconds = 25;
constexpr size_t kMostPasteBytes = size_t{1} << 20;

constexpr int Control(char letter) { return letter & 0x1f; }

const struct {
  int code;
  Key key;
} kKeys[] = {
    {KEY_BACKSPACE, Key::kBackspace},
    {KEY_DC, Key::kDelete},
    {KEY_LEFT, Key::kLeft},
    {KEY_RIGHT, Key::kRight},
    {KEY_SLEFT, Key::kWordLeft},
    {KEY_SRIGHT, Key::kWordRight},
    {kByWordLeft, Key::kWordLeft},
    {kByWordRight, Key::kWordRight},
    {KEY_UP, Key::kUp},
    {KEY_DOWN, Key::kDown},
    {KEY_HOME, Key::kHome},
    {KEY_END, Key::kEnd},
    {KEY_PPAGE, Key::kPageUp},
    {KEY_NPAGE, Key::kPageDown},
    {KEY_F(2), Key::kLog},
    {KEY_ENTER, Key::kEnter},
};

const struct {
  int character;
  Key key;
} kControls[] = {
    {'\r', Key::kEnter},
    {'\n', Key::kNewLine},
    {0x7f, Key::kBackspace},
    {Control('H'), Key::kBackspace},
    {Control('A'), Key::kHome},
    {Control('B'), Key::kLeft},
    {Control('C'), Key::kInterrupt},
    {Control('D'), Key::kEndOfInput},
    {Control('E'), Key::kEnd},
    {Control('F'), Key::kRight},
    {Control('K'), Key::kDeleteToEnd},
    {Control('N'), Key::kDown},
    {Control('P'), Key::kUp},
    {Control('U'), Key::kDeleteToStart},
    {Control('W'), Key::kDeleteWord},
};

// With Alt.
const struct {
  int character;
  Key key;
} kAltKeys[] = {
    {'\r', Key::kNewLine},  {'\n', Key::kNewLine},    {'b', Key::kWordLeft},
    {'f', Key::kWordRight}, {0x7f, Key::kDeleteWord},
};

std::string ToUtf8(wint_t character) {
  char bytes[MB_LEN_MAX];
  std::mbstate_t state = {};
  const size_t count = std::wcrtomb(bytes, character, &state);
  return count == static_cast<size_t>(-1) ? "" : std::string(bytes, count);
}

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
  for (const char* name : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
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
  set_escdelay(kEscapeMilliseconds);
  UseColours();
  EnterModes();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  define_key("\033[200~", kPasteBegin);
  define_key("\033[201~", kPasteEnd);
  // With Ctrl, and with Alt.
  for (const char* modifier : {"5", "3"}) {
    define_key(absl::StrCat("\033[1;", modifier, "D").c_str(), kByWordLeft);
    define_key(absl::StrCat("\033[1;", modifier, "C").c_str(), kByWordRight);
  }
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

std::string Terminal::ReadPaste() {
  // Its end comes soon: what is pasted is sent by the terminal, not by hand.
  timeout(1000);
  std::string text;
  wint_t code;
  for (;;) {
    const int kind = get_wch(&code);
    if (kind == ERR || (kind == KEY_CODE_YES && code == kPasteEnd)) break;
    if (kind != OK || text.size() >= kMostPasteBytes) continue;
    text += code == '\r' ? "\n" : ToUtf8(code);
  }
  nodelay(stdscr, TRUE);
  return text;
}

std::optional<KeyPress> Terminal::Next() {
  for (;;) {
    wint_t code;
    const int kind = get_wch(&code);
    if (kind == ERR) return std::nullopt;
    if (kind == KEY_CODE_YES) {
      if (code == kPasteBegin) return KeyPress{Key::kText, ReadPaste()};
      for (const auto& known : kKeys) {
        if (static_cast<int>(code) == known.code)
          return KeyPress{known.key, ""};
      }
      continue;  // a key without a meaning here
    }
    if (code == static_cast<wint_t>(Control('Z'))) {
      Suspend();
      continue;
    }
    if (code == static_cast<wint_t>(Control('L'))) {
      clearok(stdscr, TRUE);  // what other programs wrote goes
      continue;
    }
    if (code == static_cast<wint_t>(Control('['))) {
      wint_t next;
      const int next_kind = get_wch(&next);
      if (next_kind == ERR) return KeyPress{Key::kEscape, ""};
      if (next_kind == KEY_CODE_YES) {
        if (next == KEY_LEFT) return KeyPress{Key::kWordLeft, ""};
        if (next == KEY_RIGHT) return KeyPress{Key::kWordRight, ""};
        ungetch(static_cast<int>(next));  // as without Alt
        continue;
      }
      for (const auto& known : kAltKeys) {
        if (static_cast<int>(next) == known.character) {
          return KeyPress{known.key, ""};
        }
      }
      continue;
    }
    for (const auto& known : kControls) {
      if (static_cast<int>(code) == known.character) {
        return KeyPress{known.key, ""};
      }
    }
    if (code == '\t' || code >= ' ') return KeyPress{Key::kText, ToUtf8(code)};
  }
}

}  // namespace weft::chat
