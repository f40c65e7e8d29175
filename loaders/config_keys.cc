#include "loaders/config_keys.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

// Files by other converters have other names for these.
struct OtherName {
  absl::string_view name, other;
};
constexpr OtherName kOtherNames[] = {
    {"rope.freq_base", "rope.global.freq_base"},
    {"rope.freq_base_swa", "rope.local.freq_base"},
};

}  // namespace

ConfigKeys::ConfigKeys(const GgufFile& file, const ModelTraits& traits,
                       std::string architecture)
    : file_(file), traits_(traits), architecture_(std::move(architecture)) {}

std::string ConfigKeys::Key(absl::string_view name) const {
  const std::string key = absl::StrCat(architecture_, ".", name);
  read_.insert(key);
  for (const OtherName& row : kOtherNames) {
    if (row.name != name) continue;
    std::string other = absl::StrCat(architecture_, ".", row.other);
    read_.insert(other);
    if (file_.FindValue(key) == nullptr && file_.FindValue(other) != nullptr) {
      return other;
    }
  }
  return key;
}

absl::Status ConfigKeys::CheckOtherNames() const {
  for (const OtherName& row : kOtherNames) {
    const std::string key = absl::StrCat(architecture_, ".", row.name);
    const std::string other = absl::StrCat(architecture_, ".", row.other);
    const GgufValue* first = file_.FindValue(key);
    const GgufValue* second = file_.FindValue(other);
    if (first != nullptr && second != nullptr &&
        first->Print() != second->Print()) {
      return file_.BadValue(
          other, second->Print(),
          absl::StrCat("what ", key, " says, ", first->Print(),
                       ": they are names for one thing"));
    }
  }
  return absl::OkStatus();
}

bool ConfigKeys::Handles(absl::string_view name) const {
  return std::find(traits_.handled_keys.begin(), traits_.handled_keys.end(),
                   name) != traits_.handled_keys.end() ||
         std::any_of(traits_.keys.begin(), traits_.keys.end(),
                     [&](const ModelKey& key) { return key.name == name; });
}

absl::StatusOr<std::optional<int64_t>> ConfigKeys::OptionalInRange(
    absl::string_view name, uint64_t min, uint64_t max) const {
  const std::string key = Key(name);
  WEFT_ASSIGN_OR_RETURN(std::optional<uint64_t> number,
                        file_.OptionalUint(key));
  if (!number.has_value()) return std::optional<int64_t>();
  if (*number < min || *number > max) {
    return file_.BadValue(key, absl::StrCat(*number),
                          absl::StrCat(min, " to ", max));
  }
  return std::optional<int64_t>(static_cast<int64_t>(*number));
}

absl::Status ConfigKeys::InRange(absl::string_view name, uint64_t min,
                                 uint64_t max, int64_t* out) const {
  WEFT_ASSIGN_OR_RETURN(std::optional<int64_t> value,
                        OptionalInRange(name, min, max));
  if (!value.has_value()) {
    return file_.MissingKey(Key(name), absl::StrCat(min, " to ", max));
  }
  *out = *value;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<float>> ConfigKeys::OptionalPositive(
    absl::string_view name, bool zero_is_absent) const {
  const std::string key = Key(name);
  auto value = file_.OptionalFloat(key);
  if (!value.ok()) return value.status();
  if (!value->has_value() || (zero_is_absent && **value == 0)) {
    return std::optional<float>();
  }
  if (!(**value >= kMinPositive && **value <= kMaxPositive)) {
    return file_.BadValue(key, absl::StrCat(**value),
                          "a number above 0, not infinite");
  }
  return std::optional<float>(static_cast<float>(**value));
}

absl::Status ConfigKeys::CheckOnePerBlock(const std::string& key, size_t count,
                                          int64_t blocks) const {
  if (static_cast<int64_t>(count) == blocks) {
    return absl::OkStatus();
  }
  return file_.BadValue(
      key, absl::StrCat("an array of ", count),
      absl::StrCat("one number, or one per block (", blocks, ")"));
}

absl::Status ConfigKeys::ReadFlags(const std::string& key,
                                   const GgufValue& array,
                                   std::vector<bool>* flags) const {
  WEFT_RETURN_IF_ERROR(CheckOnePerBlock(key, array.count(),
                                        static_cast<int64_t>(flags->size())));
  int64_t block = 0;
  bool good = true;
  array.ForEach([&](const GgufValue& element) {
    std::optional<bool> slides = element.ToBool();
    const std::optional<int64_t> number = element.ToInt();
    if (number == 0 || number == 1) slides = *number == 1;
    good = slides.has_value();
    if (good) (*flags)[block++] = *slides;
    return good;
  });
  if (good) return absl::OkStatus();
  return file_.BadValue(key, array.Print(), "true or false for each block");
}

}  // namespace weft
