#include "base/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/on_threads.h"
#include "base/status.h"

namespace weft {
namespace {

int64_t RoundUp(int64_t bytes) {
  return (bytes + DirectFile::kAlignment - 1) / DirectFile::kAlignment *
         DirectFile::kAlignment;
}

struct Free {
  void operator()(uint8_t* bytes) const { std::free(bytes); }
};
using Room = std::unique_ptr<uint8_t, Free>;

Room MakeRoom(int64_t bytes) {
  return Room(static_cast<uint8_t*>(
      std::aligned_alloc(DirectFile::kAlignment, DirectFile::RoomFor(bytes))));
}

}  // namespace

int64_t DirectFile::RoomFor(int64_t bytes) {
  return RoundUp(bytes + kAlignment - 1);
}

absl::StatusOr<DirectFile> DirectFile::Open(const std::string& path,
                                            const std::string& name) {
  const Room room = MakeRoom(kAlignment);
  for (const int direct : {O_DIRECT, 0}) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | direct);
    // Some file systems refuse only to read.
    const bool reads =
        file >= 0 && (direct == 0 || room == nullptr ||
                      pread(file, room.get(), kAlignment, 0) >= 0);
    if (reads) return DirectFile(file, direct != 0, name);
    const int error = errno;
    if (file >= 0) close(file);
    if (direct == 0 || error != EINVAL) {
      return absl::UnavailableError(
          absl::StrCat("cannot open file: ", name, ": ", strerror(error)));
    }
  }
  return absl::InternalError("not reached");
}

DirectFile::DirectFile(DirectFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      direct_(other.direct_),
      name_(std::move(other.name_)) {}

DirectFile::~DirectFile() {
  if (file_ >= 0) close(file_);
}

absl::Status DirectFile::Read(int64_t offset, int64_t bytes,
                              uint8_t* room) const {
  const int64_t begin = offset - InRoom(offset);
  const int64_t want = offset + bytes - begin;
  for (int64_t done = 0; done < want;) {
    // Whole blocks: the file may end in the last.
    const ssize_t got =
        pread(file_, room + done, RoundUp(want) - done, begin + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot read file: ", name_, ": ", bytes, " bytes at ",
                       offset, ": ", strerror(errno)));
    }
    // Behind a part of a block there is nothing.
    if (got == 0 || (done + got < want && got % kAlignment != 0)) {
      return absl::DataLossError(absl::StrCat(
          "file is cut off: ", name_, ": ", bytes, " bytes at ", offset,
          " are no longer there: has it been written to?"));
    }
    done += got;
  }
  if (!direct_) posix_fadvise(file_, begin, want, POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

absl::StatusOr<double> DirectFile::MeasureRate(int64_t file_bytes,
                                               int64_t piece,
                                               int threads) const {
  piece = std::clamp<int64_t>(piece, 1, std::max<int64_t>(file_bytes, 1));
  const int64_t pieces = std::max<int64_t>(file_bytes / piece, 1);
  std::atomic<int64_t> read{0};
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::seconds(1);
  const auto work = [&](int thread) -> absl::Status {
    const Room room = MakeRoom(piece);
    if (room == nullptr) {
      return absl::ResourceExhaustedError("no memory to read to");
    }
    // Steps through the pieces in no order that a disk could foresee.
    uint64_t random = 88172645463325252u + thread;
    do {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      const int64_t offset = static_cast<int64_t>(random % pieces) * piece;
      WEFT_RETURN_IF_ERROR(Read(offset, piece, room.get()));
      read += piece;
    } while (std::chrono::steady_clock::now() < end);
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(OnThreads(threads, work));
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  return static_cast<double>(read) / seconds.count();
}

}  // namespace weft
