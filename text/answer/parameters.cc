// Arguments as keys and values between markers.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "text/answer/argument_reader.h"
#include "text/answer/markers.h"
#include "text/grammar/member_types.h"
#include "text/grammar/schema_goals.h"

namespace weft::answer {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMostKeyBytes = 1024;

enum class Type {
  kString,
  kStringOrNull,  // a string, but for what stands for null
  kOther,
  kMixed,
};

Type TypeOf(uint8_t types) {
  using grammar::kNullType;
  using grammar::kStringType;
  if (types == kStringType) return Type::kString;
  if (types == (kStringType | kNullType)) return Type::kStringOrNull;
  return (types & kStringType) == 0 ? Type::kOther : Type::kMixed;
}

bool IsNull(absl::string_view text) { return text == "null" || text == "None"; }

// A value in JSON, or of Python; empty: it is neither. What may be a text is
// none for the numbers and strings of Python: +49 and 1_000 are texts then.
std::string ValueJson(absl::string_view text, bool may_be_text) {
  const absl::string_view value = absl::StripAsciiWhitespace(text);
  if (IsJson(value)) return std::string(value);
  std::string python = PythonJson(value);
  const bool structured = absl::StartsWith(value, "{") ||
                          absl::StartsWith(value, "[") ||
                          absl::StartsWith(value, "(");
  const bool word = python == "true" || python == "false" || python == "null";
  if (absl::StartsWith(python, "\"") || (may_be_text && !structured && !word)) {
    python.clear();
  }
  return python;
}

class Parameters : public ArgumentReader {
 public:
  Parameters(const CallForm* form, const json* schema)
      : form_(form), types_(schema) {}

  Scan Read(absl::string_view text, bool at_end, size_t* used,
            std::string* json) override {
    *used = 0;
    while (true) {
      size_t now = 0;
      const absl::string_view rest = text.substr(*used);
      const Step step = in_value_ ? Value(rest, at_end, &now, json)
                                  : Key(rest, at_end, &now, json);
      *used += now;
      if (step == Step::kMore) return Scan::kMore;
      if (step == Step::kBad) return Scan::kBad;
      if (step == Step::kDone) {
        absl::StrAppend(json, any_ ? "}" : "{}");
        return Scan::kDone;
      }
    }
  }

 private:
  enum class Step { kGoOn, kMore, kBad, kDone };

  // Whether the call closes at `text`.
  Match Closes(absl::string_view text) const {
    Match match = Begins(text, form_->call_close);
    if (match != Match::kYes && !form_->section_close.empty()) {
      match = std::max(match, Begins(text, form_->section_close));
    }
    return match;
  }

  Step Key(absl::string_view text, bool at_end, size_t* used,
           std::string* json) {
    const size_t at = SkipSpace(text, 0);
    if (at == text.size()) return at_end ? Step::kDone : Step::kMore;
    const absl::string_view rest = text.substr(at);
    const Match closes = Closes(rest);
    if (closes == Match::kYes) return Step::kDone;
    const Match opens = Begins(rest, form_->parameter_open);
    if (opens == Match::kNo && closes == Match::kNo) return Step::kBad;
    if (opens != Match::kYes || closes == Match::kMore) {
      return at_end ? Step::kBad : Step::kMore;
    }
    size_t end = form_->parameter_open.size();
    const size_t key_end = rest.find(form_->key_close, end);
    if (key_end == absl::string_view::npos) {
      return at_end || rest.size() > end + kMostKeyBytes ? Step::kBad
                                                         : Step::kMore;
    }
    const std::string key(
        absl::StripAsciiWhitespace(rest.substr(end, key_end - end)));
    end = key_end + form_->key_close.size();
    type_ = TypeOf(types_.Of(key));
    if (!form_->attributes_close.empty()) {
      const size_t close = rest.find(form_->attributes_close, end);
      if (close == absl::string_view::npos) {
        return at_end || rest.size() > end + kMostKeyBytes ? Step::kBad
                                                           : Step::kMore;
      }
      const absl::string_view attributes = rest.substr(end, close - end);
      if (attributes == form_->written_attributes[0]) {
        type_ = Type::kString;
      } else if (!attributes.empty()) {
        type_ = Type::kOther;
      }
      end = close + form_->attributes_close.size();
    }
    if (!form_->value_open.empty()) {
      end = SkipSpace(rest, end);
      const Match match = Begins(rest.substr(end), form_->value_open);
      if (match == Match::kNo) return Step::kBad;
      if (match == Match::kMore) return at_end ? Step::kBad : Step::kMore;
      end += form_->value_open.size();
    }
    if (form_->value_lines) {
      if (end == rest.size() && !at_end) return Step::kMore;
      if (end < rest.size() && rest[end] == '\n') ++end;
    }
    close_ = absl::StrReplaceAll(form_->value_close, {{"\1", key}});
    absl::StrAppend(json, any_ ? ", " : "{", "\"", JsonEscaped(key),
                    "\": ", type_ == Type::kString ? "\"" : "");
    key_ = key;
    any_ = true;
    in_value_ = true;
    *used = at + end;
    return Step::kGoOn;
  }

  // What closes a value is followed by another key or the end of the call;
  // else it is a part of the value.
  Match EndsAt(absl::string_view text, size_t close, bool at_end) const {
    const size_t behind = SkipSpace(text, close + close_.size());
    if (behind == text.size()) return at_end ? Match::kYes : Match::kMore;
    const absl::string_view rest = text.substr(behind);
    const Match match =
        std::max(Closes(rest), Begins(rest, form_->parameter_open));
    return match == Match::kMore && at_end ? Match::kYes : match;
  }

  Step Value(absl::string_view text, bool at_end, size_t* used,
             std::string* json) {
    size_t close = text.find(close_, searched_);
    Match ends = Match::kMore;
    while (close != absl::string_view::npos) {
      ends = EndsAt(text, close, at_end);
      if (ends != Match::kNo) break;
      close = text.find(close_, close + 1);
    }
    const bool done = close != absl::string_view::npos && ends == Match::kYes;
    size_t size = close;
    if (close == absl::string_view::npos) {
      size = text.size() - BeginningAtEnd(text, close_);
    }
    const bool break_before_close =
        form_->value_lines && size > 0 && text[size - 1] == '\n';
    const size_t told = break_before_close ? size - 1 : size;
    if (type_ == Type::kStringOrNull) {
      const absl::string_view word =
          absl::StripAsciiWhitespace(text.substr(0, told));
      if (!done && word.size() <= 4 &&
          (absl::StartsWith("null", word) || absl::StartsWith("None", word))) {
        searched_ = size;
        return Step::kMore;
      }
      type_ = done && IsNull(word) ? Type::kOther : Type::kString;
      if (type_ == Type::kString) absl::StrAppend(json, "\"");
    }
    if (type_ == Type::kString) {
      absl::StrAppend(json, JsonEscaped(text.substr(0, told)));
      *used = told;
      searched_ = size - told;
      if (!done) return Step::kMore;
      absl::StrAppend(json, "\"");
    } else {
      searched_ = size;
      if (!done) return Step::kMore;
      absl::StrAppend(json, Decided(text.substr(0, told)));
    }
    *used = size + close_.size();
    searched_ = 0;
    in_value_ = false;
    return Step::kGoOn;
  }

  // What a value is that has come as a whole.
  std::string Decided(absl::string_view text) {
    std::string quoted = absl::StrCat("\"", JsonEscaped(text), "\"");
    std::string value = ValueJson(text, type_ == Type::kMixed);
    if (value.empty()) return quoted;
    if (type_ == Type::kOther) return value;
    // A text that is also something else: what the schema allows.
    const json read = json::parse(value, nullptr, false);
    if (read.is_discarded() || types_.Allows(key_, read)) return value;
    const json string = json::parse(quoted, nullptr, false);
    const bool is_string = (types_.Of(key_) & grammar::TypeOf(read)) == 0 ||
                           types_.Allows(key_, string);
    return is_string ? quoted : value;
  }

  const CallForm* const form_;
  grammar::MemberTypes types_;
  bool any_ = false, in_value_ = false;
  Type type_ = Type::kOther;
  std::string key_;
  std::string close_;    // of this value
  size_t searched_ = 0;  // of the value's text, in vain
};

}  // namespace

std::unique_ptr<ArgumentReader> ParameterArguments(const CallForm* form,
                                                   const json* schema) {
  return std::make_unique<Parameters>(form, schema);
}

}  // namespace weft::answer
