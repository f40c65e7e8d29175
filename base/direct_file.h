// A file that is read past the page cache, in large pieces: what a program
// keeps in memory of its own need not be there twice, nor drive out what others
// have there.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

class DirectFile {
 public:
  // Of memory to read to, and of what is read.
  static constexpr int64_t kAlignment = 4096;

  // Memory that holds so many bytes of a file from wherever in it.
  static int64_t RoomFor(int64_t bytes);

  // `name` stands in messages. Where the file system does not read past the
  // page cache (O_DIRECT), what was read is dropped from it. Errors: no such
  // file, no permission.
  static absl::StatusOr<DirectFile> Open(const std::string& path,
                                         const std::string& name);
  ~DirectFile();
  DirectFile(DirectFile&& other) noexcept;
  DirectFile& operator=(DirectFile&& other) = delete;

  // Reads bytes offset .. offset + bytes - 1 to `room`, which is aligned and
  // has RoomFor(bytes); they begin at room + InRoom(offset). Errors: the
  // system's, a file that ends before.
  absl::Status Read(int64_t offset, int64_t bytes, uint8_t* room) const;
  static int64_t InRoom(int64_t offset) { return offset % kAlignment; }

  // Bytes per second of some threads that read pieces of this size all over
  // the first `file_bytes` of the file, for about a second.
  absl::StatusOr<double> MeasureRate(int64_t file_bytes, int64_t piece,
                                     int threads) const;

 private:
  DirectFile(int file, bool direct, std::string name)
      : file_(file), direct_(direct), name_(std::move(name)) {}

  int file_;
  bool direct_;
  std::string name_;
};

}  // namespace weft
