#include "serve/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

using json = nlohmann::ordered_json;

constexpr char kParam[] = "weft/param";

// As people call it in JSON.
const char* Kind(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    case json::value_t::number_float:
      // Integers that no 64 bits hold are read as these.
      return std::abs(value.get<double>()) >= 0x1p63
                 ? "a number that is too large"
                 : "a number with a fraction or exponent";
    case json::value_t::binary:  // a number as it is spelled
      return SpellingOf(value).find_first_of(".eE") == std::string::npos
                 ? "a number that is too large"
                 : "a number with a fraction or exponent";
    default:
      return "null";
  }
}

}  // namespace

std::string JsonText(const json& value) { return WriteJson(value); }

std::string JsonExcerpt(const json& value) {
  constexpr size_t kLength = 40;
  // Escaped, so that no character is cut.
  std::string text =
      PlainNumbers(value).dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() <= kLength) return text;
  return absl::StrCat(text.substr(0, kLength), "...");
}

absl::Status FieldError(absl::string_view param, absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(
      param.empty() ? std::string(message)
                    : absl::StrCat("'", param, "': ", message));
  if (!param.empty()) status.SetPayload(kParam, absl::Cord(param));
  return status;
}

std::string ErrorParam(const absl::Status& status) {
  const absl::optional<absl::Cord> param = status.GetPayload(kParam);
  return param.has_value() ? std::string(*param) : "";
}

JsonFields::JsonFields(const json& object, std::string path)
    : object_(&object), path_(std::move(path)) {
  if (object.is_object()) return;
  status_ =
      FieldError(path_, absl::StrCat(path_.empty() ? "the body: " : "",
                                     "want an object, not ", Kind(object)));
}

const json* JsonFields::Find(const char* name) const {
  if (!object_->is_object()) return nullptr;
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string JsonFields::Path(absl::string_view name) const {
  return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
}

void JsonFields::Fail(absl::string_view name, absl::string_view message) {
  Keep(FieldError(Path(name), message));
}

void JsonFields::Keep(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void JsonFields::Refuse(const char* name, absl::string_view why) {
  const json* found = Find(name);
  if (found == nullptr) return;
  const bool nothing = found->empty() || *found == false || *found == "";
  if (!nothing) Fail(name, why);
}

void JsonFields::Bool(const char* name, bool* value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) {
    return Fail(name, absl::StrCat("want true or false, not ", Kind(*found)));
  }
  *value = found->get<bool>();
}

void JsonFields::Integer(const char* name, int64_t least, int64_t most,
                         int64_t* value) {
  absl::optional<int64_t> read;
  Integer(name, least, most, &read);
  if (read.has_value()) *value = *read;
}

void JsonFields::Integer(const char* name, int64_t least, int64_t most,
                         absl::optional<int64_t>* value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_number_integer()) {
    return Fail(name, absl::StrCat("want an integer, not ", Kind(*found)));
  }
  const bool huge =
      found->is_number_unsigned() &&
      found->get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (huge || found->get<int64_t>() < least || found->get<int64_t>() > most) {
    return Fail(
        name, absl::StrCat(found->dump(), " is outside ", least, " to ", most));
  }
  *value = found->get<int64_t>();
}

void JsonFields::Number(const char* name, double least, double most,
                        float* value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_number()) {
    return Fail(name, absl::StrCat("want a number, not ", Kind(*found)));
  }
  const double number = found->get<double>();
  if (!(number >= least && number <= most)) {
    return Fail(
        name, absl::StrCat(found->dump(), " is outside ", least, " to ", most));
  }
  *value = static_cast<float>(number);
}

void JsonFields::Text(const char* name, std::string* value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  if (!found->is_string()) {
    return Fail(name, absl::StrCat("want a string, not ", Kind(*found)));
  }
  *value = found->get<std::string>();
}

void JsonFields::Texts(const char* name, size_t most,
                       std::vector<std::string>* value) {
  const json* found = Find(name);
  if (found == nullptr) return;
  const size_t count = found->is_array() ? found->size() : 1;
  if (count > most) {
    return Fail(name, absl::StrCat("at most ", most, " strings, not ", count));
  }
  value->clear();
  for (size_t i = 0; i < count; ++i) {
    const json& text = found->is_array() ? (*found)[i] : *found;
    if (!text.is_string()) {
      return Fail(name, absl::StrCat("want a string or a list of strings, not ",
                                     Kind(text)));
    }
    if (text.get_ref<const std::string&>().empty()) {
      return Fail(name, "an empty string is everywhere: leave it out");
    }
    value->push_back(text.get<std::string>());
  }
}

}  // namespace weft
