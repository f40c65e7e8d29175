#include "text/answer/call_head.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMostNameBytes = 512;

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
}

class HeadReader {
 public:
  HeadReader(const CallForm& form, const json& tools, absl::string_view text,
             bool at_end, CallHead* head)
      : form_(form), tools_(tools), text_(text), at_end_(at_end), head_(head) {}

  Match Read(bool opened) {
    if (form_.body == CallBody::kHarmony) return Harmony();
    const Match open = Open(opened);
    if (open != Match::kYes) return open;
    at_ = SkipSpace(text_, at_);
    if (at_ == text_.size()) return More();
    const bool bracket = text_[at_] == '{' || text_[at_] == '[';
    switch (form_.body) {
      case CallBody::kPython:
        return PythonCall();
      case CallBody::kBraces:
        return BraceCall();
      case CallBody::kNamed:
        return bracket ? JsonCall() : NamedCall();
      case CallBody::kParameters:
        return bracket ? JsonCall() : ParameterCall();
      default:
        return JsonCall();
    }
  }

 private:
  Match More() const { return at_end_ ? Match::kNo : Match::kMore; }

  absl::string_view Rest() const { return text_.substr(at_); }

  // Behind the markers that open a call.
  Match Open(bool opened) {
    bool section = false;
    if (!form_.section_open.empty()) {
      const Match match = Begins(Rest(), form_.section_open);
      if (match == Match::kYes) {
        section = true;
        at_ += form_.section_open.size();
      } else if (match == Match::kMore && !at_end_) {
        return match;
      }
    }
    const size_t behind = at_;
    at_ = SkipSpace(text_, at_);
    if (form_.call_open.empty()) {
      return section || opened ? Match::kYes : Match::kNo;
    }
    const Match match = Begins(Rest(), form_.call_open);
    if (match == Match::kYes) {
      at_ += form_.call_open.size();
      return match;
    }
    if (match == Match::kMore && !at_end_) return match;
    at_ = behind;
    // Some models leave the inner marker out, and write JSON.
    return opened || (section && form_.body != CallBody::kNamed) ? Match::kYes
                                                                 : Match::kNo;
  }

  bool Takes(absl::string_view name) {
    if (!tools_.is_array()) return false;
    for (const json& tool : tools_) {
      if (tool["function"]["name"] == std::string(name)) {
        head_->name = std::string(name);
        return true;
      }
    }
    return false;
  }

  const json* Schema() const {
    for (const json& tool : tools_) {
      const json& function = tool["function"];
      if (function["name"] != head_->name) continue;
      const auto found = function.find("parameters");
      return found == function.end() ? nullptr : &*found;
    }
    return nullptr;
  }

  Match Found(std::unique_ptr<ArgumentReader> arguments, size_t size) {
    head_->arguments = std::move(arguments);
    head_->size = size;
    return Match::kYes;
  }

  Match FoundWhole(absl::string_view arguments, size_t size) {
    head_->whole = std::string(arguments);
    return Found(nullptr, size);
  }

  // --- one JSON object, or the first of a list ---

  Match JsonCall() {
    if (text_[at_] == '[') at_ = SkipSpace(text_, at_ + 1);
    if (at_ == text_.size()) return More();
    if (text_[at_] != '{') return Match::kNo;
    ++at_;
    head_->json = true;
    head_->open_objects = 1;
    std::string whole;  // arguments that come before the name
    while (true) {
      at_ = SkipSpace(text_, at_);
      if (at_ == text_.size()) return More();
      if (text_[at_] == '}') {
        if (head_->name.empty() || --head_->open_objects > 0) {
          return Match::kNo;
        }
        return FoundWhole(whole.empty() ? "{}" : whole, at_ + 1);
      }
      if (text_[at_] == ',') {
        at_ = SkipSpace(text_, at_ + 1);
        if (at_ == text_.size()) return More();
      }
      std::string key;
      const Match match = Key(&key);
      if (match != Match::kYes) return match;
      const Match member = Member(key, &whole);
      if (member != Match::kMore || member_waits_) return member;
    }
  }

  Match Key(std::string* key) {
    if (text_[at_] != '"') return Match::kNo;
    const size_t begin = at_;
    const Scan scan = ScanJson(text_, at_end_, &at_);
    if (scan == Scan::kBad) return Match::kNo;
    if (scan == Scan::kMore) return More();
    *key = JsonUnescaped(text_.substr(begin, at_ - begin));
    at_ = SkipSpace(text_, at_);
    if (at_ == text_.size()) return More();
    if (text_[at_] != ':') return Match::kNo;
    at_ = SkipSpace(text_, at_ + 1);
    return at_ == text_.size() ? More() : Match::kYes;
  }

  // The value behind a key. kMore without member_waits_: the next key comes.
  Match Member(const std::string& key, std::string* whole) {
    const auto wait = [&](Match match) {
      member_waits_ = true;
      return match;
    };
    const bool by_name = form_.name_key.empty() && head_->name.empty();
    if (by_name && !Takes(key)) return Match::kNo;
    const bool arguments = by_name || key == form_.arguments_key ||
                           key == "arguments" || key == "parameters";
    const char first = text_[at_];
    if (arguments && !head_->name.empty() && (first == '{' || first == '"')) {
      if (first == '"') {
        if (at_ + 1 == text_.size()) return wait(More());
        if (text_[at_ + 1] == '"') return FoundWhole("{}", at_ + 2);
      }
      return Found(first == '{' ? JsonArguments() : TextArguments(), at_);
    }
    if (key == "function" && first == '{') {
      ++head_->open_objects;
      ++at_;
      return Match::kMore;
    }
    const size_t begin = at_;
    const Scan scan = ScanJson(text_, at_end_, &at_);
    if (scan == Scan::kBad) return Match::kNo;
    if (scan == Scan::kMore) return wait(More());
    const absl::string_view value = text_.substr(begin, at_ - begin);
    if (arguments) {
      std::string object(value);
      if (first == '"') object = JsonUnescaped(value);
      if (value == "null" || object.empty()) object = "{}";
      object = std::string(absl::StripAsciiWhitespace(object));
      if (object.empty() || object[0] != '{' || !IsJson(object)) {
        return Match::kNo;
      }
      if (!head_->name.empty()) return FoundWhole(object, at_);
      *whole = std::move(object);
    } else if (key == form_.name_key || key == "name" || key == "tool_name" ||
               key == "function") {
      if (first != '"' || !Takes(JsonUnescaped(value))) return Match::kNo;
      if (!whole->empty()) return FoundWhole(*whole, at_);
    }
    return Match::kMore;
  }

  // --- a name between markers ---

  // What stands up to `close`, which it goes behind.
  Match UpTo(absl::string_view close, absl::string_view* inside) {
    const size_t end = text_.find(close, at_);
    if (end == absl::string_view::npos || end - at_ > kMostNameBytes) {
      return text_.size() - at_ > kMostNameBytes + close.size() ? Match::kNo
                                                                : More();
    }
    *inside = text_.substr(at_, end - at_);
    at_ = end + close.size();
    return Match::kYes;
  }

  bool TakesWritten(absl::string_view written) {
    written = absl::StripAsciiWhitespace(written);
    if (!form_.id_open.empty()) {
      written = written.substr(0, written.find(form_.id_open));
    }
    if (form_.numbered) {
      head_->id = std::string(written);
      written = written.substr(0, written.rfind(':'));
    }
    return Takes(absl::StripPrefix(written, form_.name_prefix));
  }

  Match NamedCall() {
    absl::string_view written;
    if (!form_.id_close.empty()) {
      const Match match = UpTo(form_.id_close, &written);
      if (match != Match::kYes) return match;
    }
    const Match match = UpTo(form_.name_close, &written);
    if (match != Match::kYes) return match;
    if (!form_.content_name.empty() && written == form_.content_name) {
      head_->kind = CallHead::kContent;
      return Found(nullptr, at_);
    }
    if (!TakesWritten(written)) return Match::kNo;
    return ObjectOrNothing();
  }

  Match ObjectOrNothing() {
    at_ = SkipSpace(text_, at_);
    if (at_ == text_.size()) return More();
    if (text_[at_] == '{') return Found(JsonArguments(), at_);
    if (form_.call_close.empty()) return Match::kNo;
    const Match closes = Begins(Rest(), form_.call_close);
    if (closes == Match::kYes) return FoundWhole("{}", at_);
    return closes == Match::kMore ? More() : closes;
  }

  Match ParameterCall() {
    absl::string_view written;
    if (form_.name_close.empty()) {
      const size_t end = text_.find_first_of(" \t\r\n<", at_);
      if (end == absl::string_view::npos && !at_end_) {
        return text_.size() - at_ > kMostNameBytes ? Match::kNo : Match::kMore;
      }
      written =
          text_.substr(at_, end == absl::string_view::npos ? end : end - at_);
      at_ += written.size();
    } else {
      const Match match = UpTo(form_.name_close, &written);
      if (match != Match::kYes) return match;
    }
    if (!TakesWritten(written)) return Match::kNo;
    if (!form_.attributes_close.empty() &&
        !absl::EndsWith(form_.name_close, form_.attributes_close)) {
      const Match match = UpTo(form_.attributes_close, &written);
      if (match != Match::kYes) return match;
    }
    return Found(ParameterArguments(&form_, Schema()), at_);
  }

  // --- a name before a bracket ---

  Match NameBefore(char bracket) {
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    if (at_ - begin > kMostNameBytes) return Match::kNo;
    if (at_ == text_.size()) return More();
    if (text_[at_] != bracket) return Match::kNo;
    return Takes(text_.substr(begin, at_ - begin)) ? Match::kYes : Match::kNo;
  }

  Match PythonCall() {
    if (text_[at_] == '[') at_ = SkipSpace(text_, at_ + 1);
    const Match match = NameBefore('(');
    return match == Match::kYes ? Found(PythonArguments(), at_ + 1) : match;
  }

  Match BraceCall() {
    const Match prefix = Begins(Rest(), form_.name_prefix);
    if (prefix == Match::kMore) return More();
    if (prefix == Match::kYes) at_ += form_.name_prefix.size();
    const Match match = NameBefore('{');
    return match == Match::kYes ? Found(BraceArguments(form_.quote), at_)
                                : match;
  }

  // --- a message's header ---

  Match Harmony() {
    absl::string_view header;
    const Match match = UpTo(form_.name_close, &header);
    if (match != Match::kYes) return match;
    constexpr absl::string_view kTo = "to=";
    const size_t to = header.find(kTo);
    if (to != absl::string_view::npos) {
      absl::string_view recipient = header.substr(to + kTo.size());
      recipient = recipient.substr(0, recipient.find_first_of(" \t\n<"));
      if (!TakesWritten(recipient)) return Match::kNo;
      return ObjectOrNothing();
    }
    const size_t channel = header.find(form_.call_open);
    const bool analysis =
        channel != absl::string_view::npos &&
        absl::StartsWith(header.substr(channel + form_.call_open.size()),
                         "analysis");
    head_->kind = analysis ? CallHead::kReasoning : CallHead::kContent;
    return Found(nullptr, at_);
  }

  const CallForm& form_;
  const json& tools_;
  const absl::string_view text_;
  const bool at_end_;
  CallHead* const head_;
  size_t at_ = 0;
  bool member_waits_ = false;
};

}  // namespace

Match ReadHead(const CallForm& form, const json& tools, absl::string_view text,
               bool opened, bool at_end, CallHead* head) {
  *head = CallHead();
  return HeadReader(form, tools, text, at_end, head).Read(opened);
}

Match ReadObjectEnd(absl::string_view text, int open_objects, size_t* size) {
  size_t at = 0;
  while (true) {
    at = SkipSpace(text, at);
    if (at == text.size()) return Match::kMore;
    if (text[at] == '}') {
      ++at;
      if (--open_objects > 0) continue;
      *size = at;
      return Match::kYes;
    }
    if (text[at] != ',') return Match::kNo;
    at = SkipSpace(text, at + 1);
    if (at == text.size()) return Match::kMore;
    if (text[at] != '"') return Match::kNo;
    Scan scan = ScanJson(text, /*at_end=*/false, &at);
    if (scan != Scan::kDone) {
      return scan == Scan::kMore ? Match::kMore : Match::kNo;
    }
    at = SkipSpace(text, at);
    if (at == text.size()) return Match::kMore;
    if (text[at] != ':') return Match::kNo;
    ++at;
    scan = ScanJson(text, /*at_end=*/false, &at);
    if (scan != Scan::kDone) {
      return scan == Scan::kMore ? Match::kMore : Match::kNo;
    }
  }
}

}  // namespace weft::answer
