// A file of known size that is written through memory, by several threads if
// one likes, and appears under its name only when it is complete.
//
// The space is reserved before anything is written: a full disk is an error
// here, not a signal later. Movable; nothing is left behind unless Commit
// succeeds.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

class MappedOutput {
 public:
  // Creates a temporary file beside `path`, all zeros. Requires bytes > 0.
  // Errors name the path and the system's reason.
  static absl::StatusOr<MappedOutput> Create(const std::string& path,
                                             int64_t bytes);
  MappedOutput(MappedOutput&& other) noexcept;
  MappedOutput& operator=(MappedOutput&& other) = delete;
  ~MappedOutput();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

  // Puts the file in the place of `path`. data() must not be used afterwards.
  absl::Status Commit();

 private:
  MappedOutput() = default;

  std::string path_, temporary_;  // temporary_ is empty when there is none
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace weft
