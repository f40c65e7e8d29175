#include "base/sized_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/output_path.h"
#include "base/status.h"

namespace weft {
namespace {

absl::Status SystemError(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot write file: ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<SizedOutput> SizedOutput::Create(const std::string& path,
                                                int64_t bytes) {
  WEFT_ASSIGN_OR_RETURN(OutputPath place, ResolveRegularOutput(path));
  SizedOutput output;
  output.path_ = place.target;
  output.file_ = open(place.temporary.c_str(),
                      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output.file_ < 0) return SystemError(path, errno);
  output.temporary_ = std::move(place.temporary);
  if (ftruncate(output.file_, bytes) != 0) return SystemError(path, errno);
  return output;
}

SizedOutput::SizedOutput(SizedOutput&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(file_, other.file_);
}

SizedOutput::~SizedOutput() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

absl::Status SizedOutput::Write(int64_t offset,
                                absl::Span<const uint8_t> part) const {
  while (!part.empty()) {
    const ssize_t written = pwrite(file_, part.data(), part.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError(path_, written < 0 ? errno : ENOSPC);
    part.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

absl::Status SizedOutput::Commit() {
  // Some file systems tell only here that there was no space.
  const int closed = close(std::exchange(file_, -1));
  if (closed != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(path_, errno);
  }
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace weft
