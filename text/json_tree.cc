#include "text/json_tree.h"

#include <algorithm>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

// About what a value takes in its list or object while that grows, what a list
// or object does beside, and what a key or a string does beside its bytes.
constexpr int64_t kValueBytes = 2 * sizeof(json);
constexpr int64_t kContainerBytes = 48;
constexpr int64_t kTextBytes = 2 * sizeof(std::string);
// Objects with fewer fields are looked along.
constexpr size_t kFewFields = 16;
// Marks binary values that are numbers.
constexpr uint8_t kSpelled = 'N';

std::string PlainText(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool HasSpelledNumber(const json& value) {
  if (!value.is_structured()) return value.is_binary();
  return std::any_of(value.begin(), value.end(), HasSpelledNumber);
}

void Write(const json& value, std::string* text) {
  if (IsSpelledNumber(value)) return absl::StrAppend(text, SpellingOf(value));
  if (!value.is_structured()) return absl::StrAppend(text, PlainText(value));
  const bool object = value.is_object();
  text->push_back(object ? '{' : '[');
  bool first = true;
  for (auto part = value.begin(); part != value.end(); ++part) {
    if (!first) text->push_back(',');
    first = false;
    if (object) absl::StrAppend(text, PlainText(part.key()), ":");
    Write(*part, text);
  }
  text->push_back(object ? '}' : ']');
}

// The number that \uXXXX stands for at the beginning of `text`; -1: it is none.
int EscapedUnit(absl::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  int unit = 0;
  for (const char c : text.substr(2, 4)) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return -1;
    const int digit = absl::ascii_isdigit(static_cast<unsigned char>(c))
                          ? c - '0'
                          : absl::ascii_tolower(c) - 'a' + 10;
    unit = unit * 16 + digit;
  }
  return unit;
}

bool IsFirstHalf(int unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool IsSecondHalf(int unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace

json NumberOf(absl::string_view spelling) {
  json number = json::parse(spelling.begin(), spelling.end(), nullptr, false);
  if (number.is_number() && number.dump() == spelling) return number;
  return json::binary({spelling.begin(), spelling.end()}, kSpelled);
}

bool IsSpelledNumber(const json& value) { return value.is_binary(); }

std::string SpellingOf(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return std::string(bytes.begin(), bytes.end());
}

std::string WriteJson(const json& value) {
  if (!HasSpelledNumber(value)) return PlainText(value);
  std::string text;
  Write(value, &text);
  return text;
}

json PlainNumbers(json value) {
  if (IsSpelledNumber(value)) {
    return std::strtod(SpellingOf(value).c_str(), nullptr);
  }
  if (value.is_structured()) {
    for (json& part : value) {
      if (HasSpelledNumber(part)) part = PlainNumbers(std::move(part));
    }
  }
  return value;
}

std::string WithoutLoneSurrogates(absl::string_view json) {
  constexpr absl::string_view kReplacement = "\\ufffd";
  std::string text(json);
  for (size_t at = text.find('\\'); at != std::string::npos;
       at = text.find('\\', at)) {
    const absl::string_view rest = absl::string_view(text).substr(at);
    const int unit = EscapedUnit(rest);
    if (unit < 0) {
      at += 2;
      continue;
    }
    const bool pair =
        IsFirstHalf(unit) && IsSecondHalf(EscapedUnit(rest.substr(6)));
    if (!pair && (IsFirstHalf(unit) || IsSecondHalf(unit))) {
      text.replace(at, kReplacement.size(), kReplacement.data(),
                   kReplacement.size());
    }
    at += pair ? 12 : 6;
  }
  return text;
}

bool JsonTree::number_float(number_float_t value, const string_t& spelled) {
  return keeps_ ? number(spelled) : Put(value, 0);
}

bool JsonTree::number(absl::string_view spelled) {
  json value = NumberOf(spelled);
  const int64_t bytes = IsSpelledNumber(value)
                            ? kTextBytes + static_cast<int64_t>(spelled.size())
                            : 0;
  return Put(std::move(value), bytes);
}

bool JsonTree::string(string_t& value) {
  const int64_t bytes = kTextBytes + static_cast<int64_t>(value.size());
  return Put(std::move(value), bytes);
}

bool JsonTree::start_object(size_t) { return Open(json::object()); }
bool JsonTree::start_array(size_t) { return Open(json::array()); }

bool JsonTree::key(string_t& name) {
  if (spelling_ == Spelling::kInFields && open_.size() == 1) {
    keeps_ = std::find(kept_.begin(), kept_.end(), name) != kept_.end();
  }
  Level& level = open_.back();
  auto& fields = level.value->get_ref<json::object_t&>();
  if (!Spend(kTextBytes + static_cast<int64_t>(name.size()))) return false;
  if (fields.size() < kFewFields) {
    level.field = &fields[name];
    return true;
  }
  if (fields.size() >= static_cast<size_t>(kMaxJsonFields)) {
    return Fail(absl::StrCat("an object of ", what_, " has more than ",
                             kMaxJsonFields, " fields"));
  }
  if (level.index.empty()) {
    for (size_t i = 0; i < fields.size(); ++i) {
      level.index.emplace((fields.begin() + i)->first, i);
    }
  }
  const auto [found, added] = level.index.emplace(name, fields.size());
  // As a vector, which does not look for the name.
  using Fields = std::vector<std::pair<const std::string, json>>;
  Fields& list = fields;
  if (added) list.emplace_back(std::move(name), json());
  level.field = &list[found->second].second;
  return true;
}

bool JsonTree::parse_error(size_t at, const std::string&,
                           const nlohmann::detail::exception& error) {
  // Numbers have no end of their own.
  return Fail(dynamic_cast<const json::out_of_range*>(&error) != nullptr
                  ? absl::StrCat(what_, " holds a number that is too large")
                  : absl::StrCat(
                        what_, " is no JSON in UTF-8: it breaks at byte ", at));
}

absl::StatusOr<json> JsonTree::Take() {
  if (!status_.ok()) return status_;
  return std::move(root_);
}

bool JsonTree::Fail(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  return false;
}

bool JsonTree::Spend(int64_t bytes) {
  bytes_ += bytes;
  return bytes_ <= kMaxJsonBytes ||
         Fail(absl::StrCat("the values of ", what_, " take more than ",
                           kMaxJsonBytes, " bytes"));
}

json* JsonTree::Place(json value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Level& level = open_.back();
  if (level.value->is_array()) {
    level.value->push_back(std::move(value));
    return &level.value->back();
  }
  *level.field = std::move(value);
  return level.field;
}

bool JsonTree::Put(json value, int64_t bytes) {
  if (!Spend(kValueBytes + bytes)) return false;
  Place(std::move(value));
  return true;
}

bool JsonTree::Open(json value) {
  if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
    return Fail(absl::StrCat(what_, " has more than ", kMaxJsonDepth,
                             " objects and lists within each other"));
  }
  if (!Spend(kValueBytes + kContainerBytes)) return false;
  Level level;
  level.value = Place(std::move(value));
  open_.push_back(std::move(level));
  return true;
}

}  // namespace weft
