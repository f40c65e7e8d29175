// The keys that clients must show: "Authorization: Bearer KEY".
//
// Idea: only SHA-256 hashes are kept and compared, each in constant time and
// all of them always, so that time tells nothing about how much of a key was
// right, nor which one.
//
// Never changes: all methods are thread-safe.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may ask

  // One key per line; empty lines and lines that begin with # are skipped, and
  // space around a key. Errors name no key: there is none, one with bytes that
  // no header can hold.
  static absl::StatusOr<ApiKeys> Parse(absl::string_view text);

  bool empty() const { return hashes_.empty(); }
  // Whether the header's value shows one of them; true when there are none.
  bool Accept(absl::string_view authorization) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  std::vector<Hash> hashes_;
};

}  // namespace weft
