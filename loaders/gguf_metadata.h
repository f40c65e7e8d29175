// The keys and values of a GGUF file, with typed access.
//
// Every getter says in its error which key, what was found and what was
// expected. `Get` needs the key to be there; `Optional` gives nullopt when it
// is not, but a key of the wrong type is an error in both. Thread-safe once
// filled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "loaders/gguf_value.h"

namespace weft {

struct GgufKeyValue {
  absl::string_view key;  // points into the file
  GgufValue value;
};

class GgufMetadata {
 public:
  GgufMetadata() = default;
  // Keeps `file` alive; its path stands in messages.
  explicit GgufMetadata(std::shared_ptr<const MappedFile> file)
      : file_(std::move(file)) {}

  const std::string& path() const { return file_->path(); }

  // All keys in the order of the file.
  absl::Span<const GgufKeyValue> metadata() const { return entries_; }
  // Null when the key is not there.
  const GgufValue* FindValue(absl::string_view key) const;

  absl::StatusOr<std::string> GetString(absl::string_view key) const;
  // Any integer type whose value fits.
  absl::StatusOr<uint64_t> GetUint(absl::string_view key) const;
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const;
  // f32, f64 or an integer. May be NaN or infinite.
  absl::StatusOr<double> GetFloat(absl::string_view key) const;
  absl::StatusOr<bool> GetBool(absl::string_view key) const;

  absl::StatusOr<std::optional<std::string>> OptionalString(
      absl::string_view key) const;
  absl::StatusOr<std::optional<uint64_t>> OptionalUint(
      absl::string_view key) const;
  absl::StatusOr<std::optional<int64_t>> OptionalInt(
      absl::string_view key) const;
  absl::StatusOr<std::optional<double>> OptionalFloat(
      absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> OptionalBool(absl::string_view key) const;

  // Arrays. Strings point into the file. Integers come from any integer element
  // type, converted one by one; floats only from f32 and f64. An f64 element is
  // rounded to float.
  absl::StatusOr<std::vector<absl::string_view>> GetStrings(
      absl::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const;
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<absl::string_view>>> OptionalStrings(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<int64_t>>> OptionalInts(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<float>>> OptionalFloats(
      absl::string_view key) const;

  // The errors that the getters give, for callers that check further.
  absl::Status MissingKey(absl::string_view key,
                          absl::string_view expected) const;
  absl::Status BadValue(absl::string_view key, absl::string_view found,
                        absl::string_view expected) const;

  // False when the key is already there.
  bool Add(absl::string_view key, const GgufValue& value);

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<GgufKeyValue> entries_;
  absl::flat_hash_map<absl::string_view, size_t> index_;
};

}  // namespace weft
