#include "serve/json_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/json_fields.h"

namespace weft {
namespace {

constexpr size_t kPiece = 16 << 10;

// The longest beginning of `text` of at most `most` bytes that cuts no
// character.
size_t CutLength(absl::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  size_t length = most;
  while (length > most - 4 &&
         (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) {
    --length;
  }
  return length;
}

}  // namespace

void JsonStream::Put(absl::string_view text) {
  if (broken_) return;
  piece_.append(text.data(), text.size());
  if (piece_.size() < kPiece) return;
  broken_ = !write_(piece_);
  piece_.clear();
}

void JsonStream::Separate() {
  if (separate_) Put(",");
  separate_ = true;
}

void JsonStream::Open(char bracket) {
  Separate();
  Put(absl::string_view(&bracket, 1));
  closing_.push_back(bracket == '{' ? '}' : ']');
  separate_ = false;
}

void JsonStream::Close() {
  Put(absl::string_view(&closing_.back(), 1));
  closing_.pop_back();
  separate_ = true;
}

void JsonStream::Key(absl::string_view name) {
  Separate();
  Put(absl::StrCat(JsonText(std::string(name)), ":"));
  separate_ = false;
}

void JsonStream::Value(const nlohmann::ordered_json& value) {
  Raw(JsonText(value));
}

void JsonStream::Text(absl::string_view text) {
  Separate();
  Put("\"");
  while (!text.empty() && !broken_) {
    const size_t length = CutLength(text, kPiece);
    const std::string quoted = JsonText(std::string(text.substr(0, length)));
    Put(absl::string_view(quoted).substr(1, quoted.size() - 2));
    text.remove_prefix(length);
  }
  Put("\"");
}

void JsonStream::Raw(absl::string_view json) {
  Separate();
  Put(json);
}

bool JsonStream::Finish() {
  if (!piece_.empty() && !broken_) broken_ = !write_(piece_);
  piece_.clear();
  return !broken_;
}

}  // namespace weft
