#include "runtime/machine/arena.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr uintptr_t kHugePageBytes = uintptr_t{2} << 20;

uintptr_t RoundUpToHugePage(uintptr_t address) {
  return (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

}  // namespace

absl::StatusOr<Arena> Arena::Create(int64_t bytes, absl::string_view purpose,
                                    bool huge_pages) {
  // Far above any address space, far below overflow of the sum below.
  constexpr int64_t kMaxBytes = int64_t{1} << 56;
  if (bytes < 0 || bytes > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot take memory: ", purpose, ": ", bytes, " bytes is no size"));
  }
  Arena arena;
  if (bytes == 0) return arena;
  const size_t mapped_bytes =
      static_cast<size_t>(bytes) + (huge_pages ? kHugePageBytes : 0);
  void* mapping = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot take memory: ", purpose, ": ", bytes, " bytes: ",
        std::strerror(errno), ", choose a smaller context or model"));
  }
  arena.mapping_ = mapping;
  arena.mapped_bytes_ = mapped_bytes;
  arena.data_ = static_cast<uint8_t*>(mapping);
  arena.bytes_ = bytes;
  if (huge_pages) {
    arena.data_ = reinterpret_cast<uint8_t*>(
        RoundUpToHugePage(reinterpret_cast<uintptr_t>(mapping)));
    AdviseHugePages(mapping, static_cast<int64_t>(mapped_bytes));
  }
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

bool AdviseHugePages(const void* begin, int64_t bytes) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = RoundUpToHugePage(address);
  const uintptr_t last = (address + bytes) / kHugePageBytes * kHugePageBytes;
  if (bytes <= 0 || last <= first) return false;
  return madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE) ==
         0;
}

std::string WhyNoHugePages(absl::string_view enabled) {
  // "always [madvise] never"; madvise itself agrees even where it is never.
  return enabled.empty() || absl::StrContains(enabled, "[never]")
             ? "this system has them switched off "
               "(/sys/kernel/mm/transparent_hugepage/enabled)"
             : "";
}

std::string WhyNoHugePages() {
  if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) {
    return "they are switched off for this process (PR_SET_THP_DISABLE)";
  }
  std::string enabled;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"),
               enabled);
  return WhyNoHugePages(enabled);
}

}  // namespace weft
