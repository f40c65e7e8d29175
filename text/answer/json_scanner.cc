#include "text/answer/json_scanner.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "text/json_tree.h"

namespace weft::answer {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '+' || c == '.';
}

size_t Digits(absl::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) {
    ++end;
  }
  return end - at;
}

bool IsNumber(absl::string_view text) {
  size_t at = text[0] == '-' ? 1 : 0;
  size_t digits = Digits(text, at);
  if (digits == 0 || (digits > 1 && text[at] == '0')) return false;
  at += digits;
  if (at < text.size() && text[at] == '.') {
    digits = Digits(text, at + 1);
    if (digits == 0) return false;
    at += 1 + digits;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    digits = Digits(text, at);
    if (digits == 0) return false;
    at += digits;
  }
  return at == text.size();
}

bool IsWord(absl::string_view text) {
  return text == "true" || text == "false" || text == "null" || IsNumber(text);
}

}  // namespace

void JsonScanner::ValueEnded() {
  wants_ = open_.empty() ? Wants::kNothing : Wants::kCommaOrClose;
}

Scan JsonScanner::InString(char c) {
  const unsigned char byte = static_cast<unsigned char>(c);
  if (byte < 0x20) return Scan::kBad;
  if (digits_ > 0) {
    if (!absl::ascii_isxdigit(byte)) return Scan::kBad;
    --digits_;
    return Scan::kMore;
  }
  if (escape_) {
    escape_ = false;
    if (c == 'u') digits_ = 4;
    return absl::string_view("\"\\/bfnrtu").find(c) == absl::string_view::npos
               ? Scan::kBad
               : Scan::kMore;
  }
  if (c == '\\') escape_ = true;
  if (c != '"') return Scan::kMore;
  in_string_ = false;
  if (wants_ == Wants::kKey || wants_ == Wants::kKeyOrClose) {
    wants_ = Wants::kColon;
  } else {
    ValueEnded();
  }
  return wants_ == Wants::kNothing ? Scan::kDone : Scan::kMore;
}

Scan JsonScanner::Feed(char c) {
  if (in_string_) return InString(c);
  if (!word_.empty()) {
    if (IsWordByte(c)) {
      word_ += c;
      return Scan::kMore;
    }
    if (!IsWord(word_)) return Scan::kBad;
    word_.clear();
    ValueEnded();
  }
  if (IsSpace(c)) return Scan::kMore;
  return Structure(c);
}

Scan JsonScanner::Structure(char c) {
  const bool value = wants_ == Wants::kValue || wants_ == Wants::kValueOrClose;
  switch (c) {
    case '{':
    case '[':
      if (!value || open_.size() >= kMaxDepth) return Scan::kBad;
      open_.push_back(c);
      wants_ = c == '{' ? Wants::kKeyOrClose : Wants::kValueOrClose;
      return Scan::kMore;
    case '}':
    case ']': {
      const bool object = c == '}';
      if (open_.empty() || (open_.back() == '{') != object) return Scan::kBad;
      if (wants_ != Wants::kCommaOrClose &&
          wants_ != (object ? Wants::kKeyOrClose : Wants::kValueOrClose)) {
        return Scan::kBad;
      }
      open_.pop_back();
      ValueEnded();
      return open_.empty() ? Scan::kDone : Scan::kMore;
    }
    case '"':
      if (!value && wants_ != Wants::kKey && wants_ != Wants::kKeyOrClose) {
        return Scan::kBad;
      }
      in_string_ = true;
      return Scan::kMore;
    case ':':
      if (wants_ != Wants::kColon) return Scan::kBad;
      wants_ = Wants::kValue;
      return Scan::kMore;
    case ',':
      if (wants_ != Wants::kCommaOrClose) return Scan::kBad;
      wants_ = open_.back() == '{' ? Wants::kKey : Wants::kValue;
      return Scan::kMore;
    default:
      if (!value || !IsWordByte(c)) return Scan::kBad;
      word_ = c;
      return Scan::kMore;
  }
}

Scan JsonScanner::AtEnd() const {
  if (wants_ == Wants::kNothing) return Scan::kDone;
  if (!word_.empty() && open_.empty()) {
    return IsWord(word_) ? Scan::kDone : Scan::kBad;
  }
  return Scan::kMore;
}

bool JsonScanner::CanComplete() const {
  const bool value = wants_ == Wants::kValue || wants_ == Wants::kValueOrClose;
  if (in_string_) return value && !escape_ && digits_ == 0;
  if (!word_.empty()) return IsWord(word_);
  return wants_ == Wants::kCommaOrClose || wants_ == Wants::kKeyOrClose ||
         wants_ == Wants::kValueOrClose || wants_ == Wants::kNothing;
}

std::string JsonScanner::Completion() const {
  std::string end = in_string_ ? "\"" : "";
  for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
    end += *open == '{' ? '}' : ']';
  }
  return end;
}

Scan ScanJson(absl::string_view text, bool at_end, size_t* at) {
  JsonScanner scanner;
  size_t i = *at;
  while (i < text.size() && IsSpace(text[i])) ++i;
  const bool word = i < text.size() && IsWordByte(text[i]);
  for (; i < text.size(); ++i) {
    if (word && !IsWordByte(text[i])) {
      *at = i;
      return scanner.AtEnd() == Scan::kDone ? Scan::kDone : Scan::kBad;
    }
    const Scan scan = scanner.Feed(text[i]);
    if (scan == Scan::kMore) continue;
    *at = i + 1;
    return scan;
  }
  if (!at_end) return Scan::kMore;
  *at = i;
  return scanner.AtEnd();
}

bool IsJson(absl::string_view text) {
  size_t at = 0;
  return ScanJson(text, /*at_end=*/true, &at) == Scan::kDone &&
         absl::StripAsciiWhitespace(text.substr(at)).empty();
}

std::string JsonEscaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\':
        escaped += '\\';
        escaped += c;
        break;
      case '\n':
        escaped += "\\n";
        break;
      case '\r':
        escaped += "\\r";
        break;
      case '\t':
        escaped += "\\t";
        break;
      default:
        if (byte < 0x20) {
          absl::StrAppend(&escaped, absl::StrFormat("\\u%04x", byte));
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

std::string JsonUnescaped(absl::string_view text) {
  const std::string paired = WithoutLoneSurrogates(text);
  const auto parsed = nlohmann::json::parse(paired, nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string();
}

}  // namespace weft::answer
