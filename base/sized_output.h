// A file of known size that is written in any order, by several threads if one
// likes, and appears under its name only when it is complete.
//
// Written, not mapped: a page that is written through a mapping is first
// cleared by the system, which takes as long as all the rest. Movable; nothing
// is left behind unless Commit succeeds.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

class SizedOutput {
 public:
  // Creates a temporary file beside `path`, all zeros. Requires bytes > 0.
  // Errors name the path and the system's reason.
  static absl::StatusOr<SizedOutput> Create(const std::string& path,
                                            int64_t bytes);
  SizedOutput(SizedOutput&& other) noexcept;
  SizedOutput& operator=(SizedOutput&& other) = delete;
  ~SizedOutput();

  // Thread-safe for parts that do not overlap. Requires a part inside the file.
  // Errors: a full disk.
  absl::Status Write(int64_t offset, absl::Span<const uint8_t> part) const;

  // Puts the file in the place of `path`; nothing may be written afterwards.
  absl::Status Commit();

 private:
  SizedOutput() = default;

  std::string path_, temporary_;  // temporary_ is empty when there is none
  int file_ = -1;
};

}  // namespace weft
