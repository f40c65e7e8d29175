#include "runtime/hub/part_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {
namespace {

constexpr size_t kIdentityDigits = 16;

absl::Status SystemError(absl::string_view path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write file: ", path, ": ", std::strerror(error)));
}

EVP_MD_CTX* Context(void* context) { return static_cast<EVP_MD_CTX*>(context); }

bool StandsThere(const std::string& path, int file) {
  struct stat there, here;
  return lstat(path.c_str(), &there) == 0 && fstat(file, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

std::string PartPath(const std::string& target, absl::string_view identity) {
  Sha256 name;
  name.Add(identity);
  return absl::StrCat(target, ".", name.Finish().substr(0, kIdentityDigits),
                      kPartEnding);
}

// Parts of the target but `keep` that no process holds.
void RemoveOthers(const std::string& target, const std::string& keep) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(target).parent_path();
  const std::string prefix = fs::path(target).filename().string() + ".";
  std::vector<std::string> found;
  if (DIR* const entries = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(entries)) {
      const absl::string_view name = entry->d_name;
      if (absl::StartsWith(name, prefix) && absl::EndsWith(name, kPartEnding) &&
          name.size() == prefix.size() + kIdentityDigits + kPartEnding.size()) {
        found.push_back((folder / entry->d_name).string());
      }
    }
    closedir(entries);
  }
  for (const std::string& path : found) {
    if (path == keep) continue;
    const int file =
        open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && StandsThere(path, file)) {
      unlink(path.c_str());
    }
    close(file);
  }
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { Reset(); }

Sha256::Sha256(Sha256&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)) {}

Sha256::~Sha256() { EVP_MD_CTX_free(Context(context_)); }

void Sha256::Reset() {
  EVP_DigestInit_ex(Context(context_), EVP_sha256(), nullptr);
}

void Sha256::Add(absl::string_view bytes) {
  EVP_DigestUpdate(Context(context_), bytes.data(), bytes.size());
}

std::string Sha256::Finish() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(Context(context_), hash, &size);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash), size));
}

absl::StatusOr<PartFile> PartFile::Open(const std::string& target,
                                        absl::string_view identity,
                                        const std::function<void()>& on_wait) {
  PartFile part;
  part.target_ = target;
  part.path_ = PartPath(target, identity);
  RemoveOthers(target, part.path_);
  bool waited = false;
  for (;;) {
    part.file_ = open(part.path_.c_str(),
                      O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (part.file_ < 0) return SystemError(part.path_, errno);
    if (flock(part.file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      if (!std::exchange(waited, true) && on_wait) on_wait();
      while (flock(part.file_, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    struct stat info;
    if (StandsThere(part.path_, part.file_) && fstat(part.file_, &info) == 0 &&
        S_ISREG(info.st_mode)) {
      break;
    }
    // Whoever had it is done, or gave it up.
    close(std::exchange(part.file_, -1));
    if (waited && access(target.c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(target);
    }
  }
  if (identity.empty()) {
    WEFT_RETURN_IF_ERROR(part.Restart());
  } else {
    WEFT_RETURN_IF_ERROR(part.HashWhatIsThere());
  }
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_),
      hash_(std::move(other.hash_)) {}

PartFile::~PartFile() {
  if (file_ < 0) return;
  // One that has nothing is of no use to the next.
  if (bytes_ == 0) unlink(path_.c_str());
  close(file_);
}

absl::Status PartFile::HashWhatIsThere() {
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t size = pread(file_, buffer.data(), buffer.size(), bytes_);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemError(path_, errno);
    if (size == 0) return absl::OkStatus();
    hash_.Add(absl::string_view(buffer.data(), static_cast<size_t>(size)));
    bytes_ += size;
  }
}

absl::Status PartFile::Append(absl::string_view bytes) {
  hash_.Add(bytes);
  while (!bytes.empty()) {
    const ssize_t size = pwrite(file_, bytes.data(), bytes.size(), bytes_);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return SystemError(path_, size < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(size));
    bytes_ += size;
  }
  return absl::OkStatus();
}

absl::Status PartFile::Restart() {
  bytes_ = 0;
  hash_.Reset();
  if (ftruncate(file_, 0) != 0) return SystemError(path_, errno);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PartFile::Commit(absl::string_view sha256) {
  const std::string found = hash_.Finish();
  if (!sha256.empty() && found != sha256) {
    return absl::DataLossError(absl::StrCat("wrong checksum: ", target_,
                                            ": what came has ", found,
                                            ", the hub promised ", sha256));
  }
  if (fsync(file_) != 0 || std::rename(path_.c_str(), target_.c_str()) != 0) {
    return SystemError(target_, errno);
  }
  const std::string folder =
      std::filesystem::path(target_).parent_path().string();
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened >= 0) {
    fsync(opened);  // some file systems cannot
    close(opened);
  }
  close(std::exchange(file_, -1));
  return found;
}

void PartFile::Discard() {
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(std::exchange(file_, -1));
}

int64_t PartBytes(const std::string& target, absl::string_view identity) {
  struct stat info;
  if (identity.empty()) return 0;
  return stat(PartPath(target, identity).c_str(), &info) == 0 ? info.st_size
                                                              : 0;
}

void RemoveParts(const std::string& target) { RemoveOthers(target, ""); }

}  // namespace weft
