// Files that never stand half-written: every file that weft writes goes through
// here.
//
// Idea: a file is written under a random name beside its place, created anew
// (never through a link that somebody planted), made durable, and renamed. Its
// writer holds a lock on it (flock), which ends with the process however that
// ends; so what a dead process left is known without its number, also between
// containers that share a folder, and the next writer of the same file removes
// it.
//
// Limits: where a file system has no locks nothing is ever taken for left
// behind.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// What becomes of unfinished files that dead writers of the same file left. To
// find them the whole folder is read: who writes many files into one looks once
// (RemoveLeftBehind).
enum class LeftBehind { kGoes, kStays };

// A file that is written in any order, by several threads if one likes, and
// appears under its name only when it is complete.
//
// Written, not mapped: a page that is written through a mapping is first
// cleared by the system, which takes as long as all the rest. Movable; nothing
// is left behind unless Commit succeeds.
class OutputFile {
 public:
  // Creates an empty file beside `path`, whose links are followed: a link stays
  // a link. Errors name the file or folder that failed and the system's reason;
  // directories, devices, pipes and sockets are refused.
  static absl::StatusOr<OutputFile> Create(
      const std::string& path, LeftBehind left_behind = LeftBehind::kGoes);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) = delete;
  ~OutputFile();

  // To this size; what was never written reads as zeros and takes no space
  // where the file system knows holes. Errors: a limit of the system.
  absl::Status Resize(int64_t bytes) const;

  // Thread-safe for parts that do not overlap. Errors: a full disk.
  absl::Status Write(int64_t offset, absl::Span<const uint8_t> part) const;

  // Where the bytes are until Commit.
  const std::string& temporary_path() const { return temporary_; }

  // Puts the file in the place of `path`, durably, with the permissions of the
  // one that it replaces; nothing may be written afterwards.
  absl::Status Commit();

 private:
  OutputFile() = default;
  absl::Status Open(LeftBehind left_behind);

  std::string target_, temporary_;  // temporary_ is empty when there is none
  int file_ = -1;
  int slot_ = -1;  // of the names that RemoveTemporaryFiles knows
};

// The whole of `content`. A device, a pipe or a socket takes the bytes as they
// come.
absl::Status WriteFile(const std::string& path, absl::string_view content);
// With a choice (LeftBehind); devices and the like are refused.
absl::Status ReplaceFile(const std::string& path, absl::string_view content,
                         LeftBehind left_behind);

// Whether the functions above failed since there was no space, or no more of it
// for this user.
bool IsDiskFull(const absl::Status& status);

// Removes what dead writers left of files in `folder` whose names end so.
void RemoveLeftBehind(const std::string& folder, absl::string_view ending);

// The error of the functions above that can be known before there is anything
// to write.
absl::Status CheckCanWrite(const std::string& path);

// For signal handlers, before the process ends: removes the files that are
// being written.
void RemoveTemporaryFiles();

}  // namespace weft
