#include "loaders/gguf_metadata.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// What a value is, for a message: its type, and itself when it is short.
std::string Describe(const GgufValue& value) {
  if (value.is_array()) return absl::StrCat("an ", value.TypeText());
  if (value.type() == GgufType::kString) {
    return absl::StrCat("string ", QuoteForMessage(*value.ToString()));
  }
  return absl::StrCat(value.TypeText(), " ", value.Print());
}

template <typename T>
using Convert = absl::FunctionRef<std::optional<T>(const GgufValue&)>;

template <typename T>
absl::StatusOr<std::optional<T>> OptionalScalar(const GgufMetadata& metadata,
                                                absl::string_view key,
                                                absl::string_view expected,
                                                Convert<T> convert) {
  const GgufValue* value = metadata.FindValue(key);
  if (value == nullptr) return std::optional<T>();
  std::optional<T> converted = convert(*value);
  if (!converted.has_value()) {
    return metadata.BadValue(key, Describe(*value), expected);
  }
  return converted;
}

template <typename T>
absl::StatusOr<std::optional<std::vector<T>>> OptionalArray(
    const GgufMetadata& metadata, absl::string_view key,
    absl::string_view expected, Convert<T> convert) {
  const GgufValue* value = metadata.FindValue(key);
  if (value == nullptr) return std::optional<std::vector<T>>();
  if (!value->is_array()) {
    return metadata.BadValue(key, Describe(*value), expected);
  }
  // The count was checked against the bytes of the file when it was read.
  std::vector<T> elements;
  absl::Status status;
  value->ForEach([&](const GgufValue& element) {
    std::optional<T> converted = convert(element);
    if (!converted.has_value()) {
      status = metadata.BadValue(
          key,
          absl::StrCat(Describe(*value), " whose element ", elements.size(),
                       " is ", Describe(element)),
          expected);
      return false;
    }
    if (elements.empty()) elements.reserve(value->count());
    elements.push_back(*std::move(converted));
    return true;
  });
  if (!status.ok()) return status;
  // An empty array of the wrong type is harmless.
  return std::make_optional(std::move(elements));
}

template <typename T>
absl::StatusOr<T> Required(const GgufMetadata& metadata, absl::string_view key,
                           absl::string_view expected,
                           absl::StatusOr<std::optional<T>> value) {
  if (!value.ok()) return value.status();
  if (!value->has_value()) return metadata.MissingKey(key, expected);
  return **std::move(value);
}

constexpr char kString[] = "a string";
constexpr char kUint[] = "an integer of 0 or more";
constexpr char kInt[] = "an integer";
constexpr char kFloat[] = "a number";
constexpr char kBool[] = "a bool";
constexpr char kStrings[] = "an array of strings";
constexpr char kInts[] = "an array of integers";
constexpr char kFloats[] = "an array of f32";

std::optional<float> ToFloatElement(const GgufValue& value) {
  if (value.type() != GgufType::kFloat32 &&
      value.type() != GgufType::kFloat64) {
    return std::nullopt;
  }
  const double number = *value.ToDouble();
  // The conversion of a larger finite number is undefined.
  if (std::isfinite(number) &&
      std::abs(number) > std::numeric_limits<float>::max()) {
    return std::nullopt;
  }
  return static_cast<float>(number);
}

std::optional<std::string> ToOwnedString(const GgufValue& value) {
  const std::optional<absl::string_view> text = value.ToString();
  if (!text.has_value()) return std::nullopt;
  return std::string(*text);
}

}  // namespace

const GgufValue* GgufMetadata::FindValue(absl::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

bool GgufMetadata::Add(absl::string_view key, const GgufValue& value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.push_back({key, value});
  return true;
}

absl::Status GgufMetadata::MissingKey(absl::string_view key,
                                      absl::string_view expected) const {
  return absl::NotFoundError(absl::StrCat("missing metadata: ", path(),
                                          ": key ", key, " is not there, ",
                                          "expected ", expected));
}

absl::Status GgufMetadata::BadValue(absl::string_view key,
                                    absl::string_view found,
                                    absl::string_view expected) const {
  return absl::InvalidArgumentError(absl::StrCat("bad metadata: ", path(),
                                                 ": key ", key, " is ", found,
                                                 ", expected ", expected));
}

absl::StatusOr<std::optional<std::string>> GgufMetadata::OptionalString(
    absl::string_view key) const {
  return OptionalScalar<std::string>(*this, key, kString, ToOwnedString);
}

absl::StatusOr<std::optional<uint64_t>> GgufMetadata::OptionalUint(
    absl::string_view key) const {
  return OptionalScalar<uint64_t>(
      *this, key, kUint, [](const GgufValue& value) { return value.ToUint(); });
}

absl::StatusOr<std::optional<int64_t>> GgufMetadata::OptionalInt(
    absl::string_view key) const {
  return OptionalScalar<int64_t>(
      *this, key, kInt, [](const GgufValue& value) { return value.ToInt(); });
}

absl::StatusOr<std::optional<double>> GgufMetadata::OptionalFloat(
    absl::string_view key) const {
  return OptionalScalar<double>(*this, key, kFloat, [](const GgufValue& value) {
    return value.ToDouble();
  });
}

absl::StatusOr<std::optional<bool>> GgufMetadata::OptionalBool(
    absl::string_view key) const {
  return OptionalScalar<bool>(
      *this, key, kBool, [](const GgufValue& value) { return value.ToBool(); });
}

absl::StatusOr<std::optional<std::vector<absl::string_view>>>
GgufMetadata::OptionalStrings(absl::string_view key) const {
  return OptionalArray<absl::string_view>(
      *this, key, kStrings,
      [](const GgufValue& value) { return value.ToString(); });
}

absl::StatusOr<std::optional<std::vector<int64_t>>> GgufMetadata::OptionalInts(
    absl::string_view key) const {
  return OptionalArray<int64_t>(
      *this, key, kInts, [](const GgufValue& value) { return value.ToInt(); });
}

absl::StatusOr<std::optional<std::vector<float>>> GgufMetadata::OptionalFloats(
    absl::string_view key) const {
  return OptionalArray<float>(*this, key, kFloats, ToFloatElement);
}

absl::StatusOr<std::string> GgufMetadata::GetString(
    absl::string_view key) const {
  return Required(*this, key, kString, OptionalString(key));
}

absl::StatusOr<uint64_t> GgufMetadata::GetUint(absl::string_view key) const {
  return Required(*this, key, kUint, OptionalUint(key));
}

absl::StatusOr<int64_t> GgufMetadata::GetInt(absl::string_view key) const {
  return Required(*this, key, kInt, OptionalInt(key));
}

absl::StatusOr<double> GgufMetadata::GetFloat(absl::string_view key) const {
  return Required(*this, key, kFloat, OptionalFloat(key));
}

absl::StatusOr<bool> GgufMetadata::GetBool(absl::string_view key) const {
  return Required(*this, key, kBool, OptionalBool(key));
}

absl::StatusOr<std::vector<absl::string_view>> GgufMetadata::GetStrings(
    absl::string_view key) const {
  return Required(*this, key, kStrings, OptionalStrings(key));
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetInts(
    absl::string_view key) const {
  return Required(*this, key, kInts, OptionalInts(key));
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloats(
    absl::string_view key) const {
  return Required(*this, key, kFloats, OptionalFloats(key));
}

}  // namespace weft
