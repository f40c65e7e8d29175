// A file while it is being downloaded: kept when the download is cut off, so
// that the next one goes on from there.
//
// Idea: the bytes stand beside the target, under a name that has a hash of what
// the hub calls this content (its checksum or ETag). So what is there is always
// the beginning of what is wanted, and a file that changed on the hub has
// another name. Its writer holds a lock on it (flock), which ends with the
// process: nobody writes a file twice at once, and what no one holds is left
// behind. The SHA-256 of the content grows with it.
//
// Limits: where a file system has no locks, two processes may write one file,
// and the checksum says so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Of the bytes, in hexadecimal. OpenSSL's.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) = delete;
  ~Sha256();

  void Add(absl::string_view bytes);
  // Once.
  std::string Finish();
  // From the beginning.
  void Reset();

 private:
  void* context_;
};

class PartFile {
 public:
  // Opens or creates the part of `target` with this identity (empty: it is
  // never gone on from), and removes parts of other identities. While another
  // process has it, `on_wait` is told once and Open waits; kAlreadyExists: then
  // the target was there, so nothing is left to do.
  static absl::StatusOr<PartFile> Open(const std::string& target,
                                       absl::string_view identity,
                                       const std::function<void()>& on_wait);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) = delete;
  ~PartFile();

  int64_t bytes() const { return bytes_; }
  // Errors: a full disk.
  absl::Status Append(absl::string_view bytes);
  absl::Status Restart();

  // Puts it in the target's place, durably, if the content has this checksum
  // (empty: whatever it has), and returns the checksum. kDataLoss: it has
  // another. Nothing may be called afterwards but Discard.
  absl::StatusOr<std::string> Commit(absl::string_view sha256);
  void Discard();

 private:
  PartFile() = default;
  absl::Status HashWhatIsThere();

  std::string target_, path_;
  int file_ = -1;
  int64_t bytes_ = 0;
  Sha256 hash_;
};

// What a part's name ends with.
inline constexpr absl::string_view kPartEnding = ".part";

// What is there of the target's part with this identity.
int64_t PartBytes(const std::string& target, absl::string_view identity);

// Removes parts of the target that no process is writing.
void RemoveParts(const std::string& target);

}  // namespace weft
