#include "runtime/machine/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "runtime/machine/system_files.h"

namespace weft {
namespace {

// What v1 writes for "no limit" is the largest number of whole pages.
constexpr int64_t kNoLimit = int64_t{1} << 62;

// The names that the two versions use.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive_file;
  const char* active_file;
};
constexpr CgroupFiles kVersion1 = {"/memory.limit_in_bytes",
                                   "/memory.usage_in_bytes",
                                   "total_inactive_file", "total_active_file"};
constexpr CgroupFiles kVersion2 = {"/memory.max", "/memory.current",
                                   "inactive_file", "active_file"};

// What one group leaves, or nothing if it sets no limit.
std::optional<int64_t> LeftInGroup(const std::string& folder,
                                   const CgroupFiles& files) {
  const auto limit = ReadNumber(folder + files.limit);
  const auto usage = ReadNumber(folder + files.usage);
  if (!limit || !usage || *limit >= kNoLimit) return std::nullopt;
  const std::string statistics = folder + "/memory.stat";
  const int64_t file_pages =
      ReadField(statistics, files.inactive_file).value_or(0) +
      ReadField(statistics, files.active_file).value_or(0);
  const int64_t held = std::max<int64_t>(0, *usage - file_pages);
  return std::max<int64_t>(0, *limit - held);
}

}  // namespace

int64_t AvailableMemory(const std::string& root) {
  int64_t available = std::numeric_limits<int64_t>::max();
  if (const auto kib = ReadField(root + "/proc/meminfo", "MemAvailable")) {
    available = *kib * 1024;
  }
  const CgroupFolders folders = FindCgroup(root, "memory");
  for (const std::string& folder : folders.v1) {
    available =
        std::min(available, LeftInGroup(folder, kVersion1).value_or(available));
  }
  for (const std::string& folder : folders.v2) {
    available =
        std::min(available, LeftInGroup(folder, kVersion2).value_or(available));
  }
  return available;
}

int64_t PeakResidentBytes() {
  if (const auto kib = ReadField("/proc/self/status", "VmHWM")) {
    return *kib * 1024;
  }
  // Keeps the parent's peak over exec, so only where there is nothing better.
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace weft
