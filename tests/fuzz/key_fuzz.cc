// Fuzz target: keys of a terminal are the same however its bytes are cut, a
// paste gives nothing before its end mark, and the editor's cursor never stands
// within a character.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chat/key_reader.h"
#include "chat/line_editor.h"
#include "chat/terminal_text.h"
#include "text/printable.h"

namespace {

using weft::chat::Key;
using weft::chat::KeyPress;
using weft::chat::KeyReader;

void Expect(bool condition) {
  if (!condition) std::abort();
}

// Text that follows text as one.
std::vector<KeyPress> Read(absl::string_view bytes, size_t step) {
  KeyReader reader;
  KeyReader::Time now;
  std::vector<KeyPress> all;
  const auto take = [&] {
    while (std::optional<KeyPress> press = reader.Next(now)) {
      Expect(press->text.empty() == (press->key != Key::kText));
      if (press->key == Key::kText && !all.empty() &&
          all.back().key == Key::kText) {
        all.back().text += press->text;
      } else {
        all.push_back(*std::move(press));
      }
    }
  };
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Push(bytes.substr(at, step), now);
    take();
  }
  now += std::chrono::hours(1);
  take();
  Expect(!reader.deadline().has_value());
  return all;
}

void CheckPaste(absl::string_view bytes) {
  static constexpr absl::string_view kBegin = "\033[200~", kEnd = "\033[201~";
  const std::string content(bytes.substr(0, bytes.find(kEnd)));
  KeyReader reader;
  KeyReader::Time now;
  reader.Push(kBegin, now);
  reader.Push(content, now);
  now += std::chrono::hours(1);
  Expect(!reader.Next(now).has_value());
  reader.Push(kEnd, now);
  if (!content.empty()) {
    const std::optional<KeyPress> press = reader.Next(now);
    Expect(press.has_value() && press->key == Key::kText);
    Expect(press->text.size() <= content.size());
  }
  Expect(!reader.Next(now).has_value());
  // Whatever was pasted, the keys behind it are keys.
  reader.Push("\r", now);
  Expect(reader.Next(now)->key == Key::kEnter);
}

void CheckEditor(const std::vector<KeyPress>& presses) {
  weft::chat::LineEditor editor;
  for (const KeyPress& press : presses) {
    switch (press.key) {
      case Key::kText:
        editor.Insert(weft::Printable(press.text));
        break;
      case Key::kBackspace:
        editor.Backspace();
        break;
      case Key::kDelete:
        editor.Delete();
        break;
      case Key::kLeft:
        editor.Left();
        break;
      case Key::kRight:
        editor.Right();
        break;
      case Key::kUp:
        editor.Up();
        break;
      case Key::kDown:
        editor.Down();
        break;
      default:
        break;
    }
    Expect(editor.cursor() <= editor.text().size());
    Expect(editor.cursor() == editor.text().size() ||
           (editor.text()[editor.cursor()] & 0xc0) != 0x80);
  }
  editor.Layout(20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool utf8 = weft::chat::UseUtf8Locale();
  Expect(utf8);
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<KeyPress> whole = Read(bytes, bytes.size() + 1);
  for (const size_t step : {size_t{1}, size_t{2}, size_t{7}}) {
    const std::vector<KeyPress> cut = Read(bytes, step);
    Expect(cut.size() == whole.size());
    for (size_t i = 0; i < cut.size(); ++i) {
      Expect(cut[i].key == whole[i].key && cut[i].text == whole[i].text);
    }
  }
  CheckPaste(bytes);
  CheckEditor(whole);
  return 0;
}
