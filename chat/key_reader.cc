#include "chat/key_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "text/utf8.h"

namespace weft::chat {
namespace {

constexpr char kEsc = '\033';
constexpr char kDel = '\177';
constexpr absl::string_view kPasteBegin = "200";
constexpr absl::string_view kPasteEnd = "\033[201~";
// Of a sequence; more are not kept.
constexpr size_t kMostParameters = 32;

constexpr char Control(char letter) { return letter & 0x1f; }

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == kDel;
}

bool IsContinuation(char c) { return (c & 0xc0) == 0x80; }

struct CharacterKey {
  char character;
  Key key;
};

constexpr CharacterKey kControls[] = {
    {'\r', Key::kEnter},
    {'\n', Key::kNewLine},
    {kDel, Key::kBackspace},
    {Control('H'), Key::kBackspace},
    {Control('A'), Key::kHome},
    {Control('B'), Key::kLeft},
    {Control('C'), Key::kInterrupt},
    {Control('D'), Key::kEndOfInput},
    {Control('E'), Key::kEnd},
    {Control('F'), Key::kRight},
    {Control('K'), Key::kDeleteToEnd},
    {Control('L'), Key::kRedraw},
    {Control('N'), Key::kDown},
    {Control('P'), Key::kUp},
    {Control('U'), Key::kDeleteToStart},
    {Control('W'), Key::kDeleteWord},
    {Control('Z'), Key::kSuspend},
};

constexpr CharacterKey kAltKeys[] = {
    {'\r', Key::kNewLine},    {'\n', Key::kNewLine},
    {'b', Key::kWordLeft},    {'f', Key::kWordRight},
    {kDel, Key::kDeleteWord}, {Control('H'), Key::kDeleteWord},
};

// The last byte of ESC [ ... and ESC O ...
constexpr CharacterKey kCursorKeys[] = {
    {'A', Key::kUp},   {'B', Key::kDown}, {'C', Key::kRight}, {'D', Key::kLeft},
    {'H', Key::kHome}, {'F', Key::kEnd},  {'Q', Key::kLog},
};

// The same of rxvt, with Shift and with Ctrl: never with parameters.
constexpr CharacterKey kShiftedKeys[] = {
    {'c', Key::kWordRight},
    {'d', Key::kWordLeft},
};

constexpr char kKeypadEnter = 'M';  // ESC O M

// The number of ESC [ ... ~
constexpr struct {
  int number;
  Key key;
} kNumberedKeys[] = {
    {1, Key::kHome},     {3, Key::kDelete}, {4, Key::kEnd}, {5, Key::kPageUp},
    {6, Key::kPageDown}, {7, Key::kHome},   {8, Key::kEnd}, {12, Key::kLog},
};

template <size_t count>
std::optional<Key> Find(const CharacterKey (&keys)[count], char character) {
  for (const CharacterKey& known : keys) {
    if (known.character == character) return known.key;
  }
  return std::nullopt;
}

// Shift, Alt, Ctrl, or several: "1;5", and "5" by old terminals.
bool HasModifier(absl::string_view parameters) {
  const std::vector<absl::string_view> parts = absl::StrSplit(parameters, ';');
  int modifier = 0;
  return absl::SimpleAtoi(parts.back(), &modifier) && modifier > 1;
}

}  // namespace

void KeyReader::Push(absl::string_view bytes, Time now) {
  if (bytes.empty()) return;
  const bool waited = now - pushed_ > kSequenceWait;
  pushed_ = now;
  if (waited && state_ != State::kEscape && state_ != State::kPaste) {
    state_ = State::kGround;
  }
  // ESC that was given as a key, but was the first byte of a sequence that came
  // late: nobody types its other bytes at once.
  if (escape_given_ && bytes.size() > 1 &&
      (bytes[0] == '[' || bytes[0] == 'O')) {
    state_ = State::kEscape;
  }
  escape_given_ = false;
  for (const char c : bytes) Step(c);
  if (state_ == State::kGround) GiveText(false);
}

std::optional<KeyPress> KeyReader::Next(Time now) {
  const std::optional<Time> escape = deadline();
  if (escape && now >= *escape) {
    state_ = State::kGround;
    escape_given_ = true;
    Give(Key::kEscape);
  }
  if (keys_.empty()) return std::nullopt;
  KeyPress press = std::move(keys_.front());
  keys_.pop_front();
  return press;
}

std::optional<KeyReader::Time> KeyReader::deadline() const {
  if (state_ != State::kEscape) return std::nullopt;
  return pushed_ + kEscapeWait;
}

void KeyReader::Give(Key key) { keys_.push_back({key, ""}); }

void KeyReader::GiveText(bool all) {
  size_t size = text_.size();
  if (!all) {
    for (size_t i = 0; i < size;) {
      const Utf8Unit unit = Utf8UnitAt(text_, i);
      if (unit.kind == Utf8Unit::kIncomplete) size = i;
      i += unit.bytes;
    }
  }
  if (size > 0) keys_.push_back({Key::kText, text_.substr(0, size)});
  text_.erase(0, size);
}

void KeyReader::Step(char c) {
  const auto byte = static_cast<unsigned char>(c);
  switch (state_) {
    case State::kGround:
      if (!IsControl(c) || c == '\t') {
        text_ += c;
        return;
      }
      GiveText(true);
      if (c == kEsc) {
        state_ = State::kEscape;
        alt_ = false;
      } else if (const std::optional<Key> key = Find(kControls, c)) {
        Give(*key);
      }
      return;
    case State::kEscape:
      parameters_.clear();
      if (c == kEsc) {
        alt_ = true;
      } else if (c == '[') {
        state_ = State::kControl;
      } else if (c == 'O') {
        state_ = State::kShift;
      } else if (absl::StrContains("]PX^_", c)) {
        state_ = State::kString;
      } else {
        state_ = byte < 0x80 ? State::kGround : State::kAltBytes;
        if (const std::optional<Key> key = Find(kAltKeys, c)) Give(*key);
      }
      return;
    case State::kAltBytes:
      if (IsContinuation(c)) return;
      break;
    case State::kControl:
    case State::kShift:
      if (byte >= 0x20 && byte < 0x40) {
        if (parameters_.size() < kMostParameters) parameters_ += c;
        return;
      }
      if (byte >= 0x40 && byte < 0x7f) {
        const bool control = state_ == State::kControl;
        state_ = State::kGround;
        if (control) return EndControl(c);
        return c == kKeypadEnter ? Give(Key::kEnter) : Cursor(c);
      }
      break;
    case State::kConsole:
      // F1 to F5 are A to E.
      if (IsControl(c)) break;
      state_ = State::kGround;
      if (c == 'B') Give(Key::kLog);
      return;
    case State::kMouse:
      if (--mouse_bytes_ == 0) state_ = State::kGround;
      return;
    case State::kString:
      if (IsControl(c)) {
        state_ = c == kEsc ? State::kStringEnd : State::kGround;
      }
      return;
    case State::kStringEnd:
      state_ = State::kGround;
      if (c == '\\') return;
      state_ = State::kEscape;
      alt_ = false;
      return Step(c);
    case State::kPaste:
      return StepPaste(c);
  }
  // It does not belong to the sequence, which ends without effect.
  state_ = State::kGround;
  Step(c);
}

void KeyReader::EndControl(char last) {
  if (parameters_.empty() && last == '[') {
    state_ = State::kConsole;
  } else if (parameters_.empty() && last == 'M') {
    state_ = State::kMouse;
    mouse_bytes_ = 3;
  } else if (last != '~') {
    Cursor(last);
  } else if (parameters_ == kPasteBegin) {
    state_ = State::kPaste;
    paste_.clear();
    end_mark_ = 0;
  } else {
    Tilde();
  }
}

void KeyReader::Cursor(char last) {
  if (const auto key = Find(kShiftedKeys, last); key && parameters_.empty()) {
    return Give(*key);
  }
  const std::optional<Key> key = Find(kCursorKeys, last);
  // What is private begins with one of "<=>?".
  if (!key || parameters_.find_first_not_of("0123456789;") != std::string::npos)
    return;
  const bool modified = alt_ || HasModifier(parameters_);
  if (modified && key == Key::kLeft) return Give(Key::kWordLeft);
  if (modified && key == Key::kRight) return Give(Key::kWordRight);
  Give(*key);
}

void KeyReader::Tilde() {
  const std::vector<absl::string_view> parts = absl::StrSplit(parameters_, ';');
  int number = 0;
  if (!absl::SimpleAtoi(parts[0], &number)) return;
  for (const auto& known : kNumberedKeys) {
    if (known.number == number) return Give(known.key);
  }
}

void KeyReader::StepPaste(char c) {
  if (c == kPasteEnd[end_mark_]) {
    if (++end_mark_ == kPasteEnd.size()) EndPaste();
    return;
  }
  // Only its first byte is ESC: what was seen of it begins no other.
  Keep(kPasteEnd.substr(0, end_mark_));
  end_mark_ = c == kEsc ? 1 : 0;
  if (c != kEsc) Keep(absl::string_view(&c, 1));
}

void KeyReader::Keep(absl::string_view pasted) {
  const size_t room = kMostPasteBytes + 1 - paste_.size();
  paste_.append(pasted.data(), std::min(pasted.size(), room));
}

void KeyReader::EndPaste() {
  std::string text;
  text.reserve(paste_.size());
  for (size_t i = 0; i < paste_.size(); ++i) {
    if (paste_[i] == '\n' && i > 0 && paste_[i - 1] == '\r') continue;
    text += paste_[i] == '\r' ? '\n' : paste_[i];
  }
  paste_ = std::string();
  state_ = State::kGround;
  if (!text.empty()) keys_.push_back({Key::kText, std::move(text)});
}

}  // namespace weft::chat
