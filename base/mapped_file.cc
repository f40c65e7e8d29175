#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

absl::Status SystemError(const std::string& path, int error) {
  return absl::NotFoundError(
      absl::StrCat("cannot open file: ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
    const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path, errno);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return SystemError(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open file: ", path, ": ",
                     S_ISDIR(info.st_mode) ? "is a directory, give a file"
                                           : "is not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    close(fd);
    return std::shared_ptr<const MappedFile>(new MappedFile({}, path));
  }
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return SystemError(path, error);
  }
  std::shared_ptr<MappedFile> made(new MappedFile(
      absl::MakeConstSpan(static_cast<const uint8_t*>(address), size), path));
  made->file_ = fd;
  made->written_ = info.st_mtim;
  return made;
}

std::shared_ptr<const MappedFile> MappedFile::FromStatic(
    absl::Span<const uint8_t> bytes, std::string name) {
  return std::shared_ptr<const MappedFile>(
      new MappedFile(bytes, std::move(name)));
}

std::string MappedFile::DescriptorPath() const {
  return file_ < 0 ? "" : absl::StrCat("/proc/self/fd/", file_);
}

void MappedFile::LeavePageCache() const {
  if (file_ >= 0) posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
}

absl::Status MappedFile::CheckUnchanged() const {
  if (file_ < 0) return absl::OkStatus();
  struct stat info;
  if (fstat(file_, &info) == 0 &&
      static_cast<size_t>(info.st_size) == bytes_.size() &&
      info.st_mtim.tv_sec == written_.tv_sec &&
      info.st_mtim.tv_nsec == written_.tv_nsec) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("model file has changed: ", path_,
                   ": its size or its time stamp is another than when it was "
                   "loaded: start again"));
}

void ReleasePages(absl::Span<const uint8_t> bytes) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + bytes.size()) / page * page;
  if (begin >= end) return;
  // Advice: where the kernel declines, the pages only stay longer.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (file_ < 0) return;
  munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  close(file_);
}

}  // namespace weft
