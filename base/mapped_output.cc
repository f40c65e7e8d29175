#include "base/mapped_output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/output_path.h"

namespace weft {
namespace {

absl::Status SystemError(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot write file: ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<MappedOutput> MappedOutput::Create(const std::string& path,
                                                  int64_t bytes) {
  absl::StatusOr<OutputPath> place = ResolveRegularOutput(path);
  if (!place.ok()) return place.status();
  MappedOutput output;
  output.path_ = place->target;
  const int fd = open(place->temporary.c_str(),
                      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return SystemError(path, errno);
  output.temporary_ = std::move(place->temporary);
  if (const int error = posix_fallocate(fd, 0, bytes); error != 0) {
    close(fd);
    return SystemError(path, error);
  }
  void* address = mmap(nullptr, static_cast<size_t>(bytes),
                       PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (address == MAP_FAILED) return SystemError(path, error);
  output.data_ = static_cast<uint8_t*>(address);
  output.bytes_ = bytes;
  return output;
}

MappedOutput::MappedOutput(MappedOutput&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

MappedOutput::~MappedOutput() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

absl::Status MappedOutput::Commit() {
  munmap(data_, static_cast<size_t>(bytes_));
  data_ = nullptr;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(path_, errno);
  }
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace weft
