// The keys of one architecture in a file's metadata, `<architecture>.*`: read
// by what stands behind the prefix, checked for their range, and noted, so that
// those that nobody read can be named.
//
// Errors name the key, what was found and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loaders/gguf.h"
#include "loaders/model_config.h"

namespace weft {

inline constexpr uint64_t kMaxDimension = uint64_t{1} << 24;
inline constexpr uint64_t kMaxContext = uint64_t{1} << 40;
// A number between these has an inverse that is finite too.
inline constexpr double kMinPositive = 1e-30;
inline constexpr double kMaxPositive = 1e30;

class ConfigKeys {
 public:
  // What is given must outlive this.
  ConfigKeys(const GgufFile& file, const ModelTraits& traits,
             std::string architecture);

  // The full name of a key that is about to be read: the one of other
  // converters, where the file has that.
  std::string Key(absl::string_view name) const;
  // Whether a key of this full name was read.
  bool WasRead(absl::string_view key) const { return read_.contains(key); }

  // Where the file has a key by both of its names, they must agree.
  absl::Status CheckOtherNames() const;

  // Whether the architecture obeys this key.
  bool Handles(absl::string_view name) const;

  // An integer from `min` to `max`; the file may, or must have it.
  absl::StatusOr<std::optional<int64_t>> OptionalInRange(absl::string_view name,
                                                         uint64_t min,
                                                         uint64_t max) const;
  absl::Status InRange(absl::string_view name, uint64_t min, uint64_t max,
                       int64_t* out) const;
  // A number above 0 whose inverse is finite too.
  absl::StatusOr<std::optional<float>> OptionalPositive(
      absl::string_view name, bool zero_is_absent) const;

  // Of keys by their full names. That an array has a number for each block:
  absl::Status CheckOnePerBlock(const std::string& key, size_t count,
                                int64_t blocks) const;
  // An array of true or false, one for each of `flags`.
  absl::Status ReadFlags(const std::string& key, const GgufValue& array,
                         std::vector<bool>* flags) const;

 private:
  const GgufFile& file_;
  const ModelTraits& traits_;
  const std::string architecture_;
  mutable absl::flat_hash_set<std::string> read_;  // by their full names
};

}  // namespace weft
