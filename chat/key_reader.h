// Bytes of a terminal to keys, without a terminal: bytes and time go in, keys
// come out.
//
// Idea: a state for each kind of sequence (ECMA-48, and xterm's control
// sequences for what terminals send), a byte at a time, so that it does not
// matter how reads cut them. Time decides whether ESC was the key, and that a
// sequence whose rest does not come was none: terminals send each at once.
//
// Limits: the sequences of xterm, its many relatives, rxvt, the Linux console,
// screen and tmux are known, without asking a terminal description. All others
// are swallowed, each with its last byte; a string (as OSC has) ends at any
// control character, so that no keyboard is dead for good. A paste ends at its
// end mark and at nothing else.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::chat {

enum class Key {
  kText,  // characters come with it
  kEnter,
  kNewLine,
  kEscape,
  kInterrupt,   // Ctrl-C
  kEndOfInput,  // Ctrl-D
  kSuspend,     // Ctrl-Z
  kRedraw,      // Ctrl-L
  kBackspace,
  kDelete,
  kDeleteWord,
  kDeleteToStart,
  kDeleteToEnd,
  kLeft,
  kRight,
  kWordLeft,
  kWordRight,
  kUp,
  kDown,
  kHome,
  kEnd,
  kPageUp,
  kPageDown,
  kLog,  // F2
};

struct KeyPress {
  Key key;
  // Of kText: what was typed since the key before, in whole characters, or all
  // of a paste, its line ends as "\n". Bytes that are not UTF-8 are among them.
  std::string text;
};

class KeyReader {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How long ESC waits for what makes a sequence of it.
  static constexpr std::chrono::milliseconds kEscapeWait{25};
  // How long a sequence waits for its rest, however slow the line: what is
  // typed after that does not belong to it.
  static constexpr std::chrono::milliseconds kSequenceWait{1000};
  // A paste beyond it gives its first bytes, one more than these.
  static constexpr size_t kMostPasteBytes = size_t{1} << 20;

  // What was read, at `now`.
  void Push(absl::string_view bytes, Time now);
  // The next key. Push what there is before: it decides whether ESC stands
  // alone.
  std::optional<KeyPress> Next(Time now);
  // When Next has a key even if nothing is pushed.
  std::optional<Time> deadline() const;

 private:
  enum class State {
    kGround,
    kEscape,     // ESC
    kAltBytes,   // the rest of a character behind ESC
    kControl,    // ESC [
    kConsole,    // ESC [ [
    kMouse,      // ESC [ M
    kShift,      // ESC O
    kString,     // ESC ]
    kStringEnd,  // ESC ] ... ESC
    kPaste,
  };

  void Step(char c);
  void StepPaste(char c);
  void Keep(absl::string_view pasted);
  void EndPaste();
  void EndControl(char last);
  // ESC [ and ESC O with what stands between and a last byte.
  void Cursor(char last);
  void Tilde();
  // Text is given up to the last whole character, or all of it.
  void GiveText(bool all);
  void Give(Key key);

  State state_ = State::kGround;
  bool alt_ = false;        // two ESC before a sequence
  std::string parameters_;  // of a sequence
  int mouse_bytes_ = 0;     // that are still to come
  std::string text_;        // typed, not given yet
  std::string paste_;
  size_t end_mark_ = 0;        // bytes of it that were seen
  Time pushed_;                // the last bytes
  bool escape_given_ = false;  // and nothing has come since
  std::deque<KeyPress> keys_;
};

}  // namespace weft::chat
