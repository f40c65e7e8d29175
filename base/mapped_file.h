// A read-only file in memory, mapped where the system allows.
//
// Thread-safe after construction. Everything that points into `bytes()` keeps
// the shared_ptr: weights in a graph and in a plan do.
#pragma once

#include <time.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

class MappedFile {
 public:
  // Errors name the path and the system's reason: not found, a directory, not
  // readable, not a regular file. An empty file gives an empty span.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      const std::string& path);

  // Wraps memory that outlives the process (the embedded model). `name` stands
  // in for the path in messages.
  static std::shared_ptr<const MappedFile> FromStatic(
      absl::Span<const uint8_t> bytes, std::string name);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const uint8_t> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // This very file, for whoever opens it another way, also when another has its
  // name by now; as long as this lives. Empty where nothing is mapped.
  std::string DescriptorPath() const;
  // Drops what the page cache has of it beside pages that are mapped: an
  // advice.
  void LeavePageCache() const;

  // An error, in one line, if the file was written to since it was opened (by
  // its size and time of modification): the bytes may be others by now. A file
  // that was replaced, as careful programs do, is another file.
  absl::Status CheckUnchanged() const;

 private:
  MappedFile(absl::Span<const uint8_t> bytes, std::string path)
      : bytes_(bytes), path_(std::move(path)) {}

  absl::Span<const uint8_t> bytes_;
  std::string path_;
  int file_ = -1;  // of what is mapped
  timespec written_ = {};
};

// Gives the memory of whole pages inside `bytes` back to the system; reading
// them again reads the file again. Requires bytes of a mapped file (or of the
// program's own read-only data): others would be lost.
void ReleasePages(absl::Span<const uint8_t> bytes);

}  // namespace weft
