// config.json of a published model: numbers by name, and which names were
// asked for.
//
// A key that changes what a model computes and that nobody obeyed is an error
// in the end (CheckAllRead), or the converted model would be another one. What
// is neither obeyed nor known to change nothing is named in a warning.
//
// Models that see pictures too have the language model's keys in an object of
// their own ("text_config"): these are taken, with those around them. A key
// that is null counts as absent.
//
// Names and meanings: the configuration classes of transformers. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

class CheckpointConfig {
 public:
  // `path` stands in messages.
  CheckpointConfig(nlohmann::json root, std::string path);

  const std::string& path() const { return path_; }
  // "architectures", or empty; of a model that sees pictures too the whole's.
  const std::string& architecture() const { return architecture_; }

  // Null when the key is absent. Each of these marks the key as read.
  const nlohmann::json* Find(absl::string_view key) const;
  // The errors of all: the key has a value of another kind, or (the first of
  // each pair) is absent. Integers are from 0 to 2^31 - 1.
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const;
  absl::StatusOr<std::optional<int64_t>> OptionalInt(
      absl::string_view key) const;
  // Finite.
  absl::StatusOr<std::optional<double>> OptionalNumber(
      absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> OptionalBool(absl::string_view key) const;
  absl::StatusOr<std::optional<std::string>> OptionalString(
      absl::string_view key) const;
  // Of numbers, all finite.
  absl::StatusOr<std::optional<std::vector<double>>> OptionalNumbers(
      absl::string_view key) const;
  absl::StatusOr<std::optional<std::vector<std::string>>> OptionalStrings(
      absl::string_view key) const;

  // The object "rope_parameters" or "rope_scaling"; empty: neither is there.
  // Its numbers, as above, by names "rope_scaling.factor". An object of
  // objects by kinds of blocks gives that of "full_attention"; sliding_rope is
  // that of "sliding_attention", else empty.
  const CheckpointConfig& rope() const;
  const CheckpointConfig& sliding_rope() const;

  // That the key is absent or one of `values`, in JSON's own writing.
  absl::Status Expect(absl::string_view key,
                      const std::vector<nlohmann::json>& values) const;

  // The error of a value that nobody can obey.
  absl::Status BadKey(absl::string_view key, absl::string_view expected) const;

  // `warnings` gets one line at most.
  absl::Status CheckAllRead(std::vector<std::string>* warnings) const;

 private:
  CheckpointConfig(nlohmann::json root, std::string path, std::string prefix);

  nlohmann::json root_;
  std::string path_, architecture_, prefix_;
  mutable std::set<std::string, std::less<>> read_;
  std::vector<CheckpointConfig> rope_;  // two, of the outermost
};

}  // namespace weft
