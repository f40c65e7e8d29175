#include "runtime/machine/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/machine/system_files.h"

namespace weft {
namespace {

constexpr int kMaxCpus = 1 << 16;

int WholeCpus(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return INT_MAX;
  return static_cast<int>(
      std::clamp<int64_t>(quota / period, 1, int64_t{INT_MAX}));
}

absl::Status ListError(absl::string_view list, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(
      "not a list of CPUs: ", list, ": ", problem, ", write it like 0-3,8"));
}

}  // namespace

std::vector<int> AllowedCpus() {
  // The kernel refuses a mask shorter than its own; its size cannot be asked.
  for (int count = 1024; count <= kMaxCpus; count *= 2) {
    cpu_set_t* mask = CPU_ALLOC(count);
    if (mask == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, mask);
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, mask) == 0;
    const bool too_short = !ok && errno == EINVAL;
    for (int cpu = 0; ok && cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(cpu);
    }
    CPU_FREE(mask);
    if (!cpus.empty()) return cpus;
    if (!too_short) break;
  }
  const int count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<int> cpus;
  for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

int CountPhysicalCores(absl::Span<const int> cpus, const std::string& root) {
  std::set<std::string> cores;
  int unknown = 0;
  for (const int cpu : cpus) {
    // All CPUs of one core have the same list.
    const auto siblings =
        ReadSystemFile(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu,
                                    "/topology/thread_siblings_list"));
    if (siblings) {
      cores.insert(std::string(absl::StripAsciiWhitespace(*siblings)));
    } else {
      ++unknown;
    }
  }
  return static_cast<int>(cores.size()) + unknown;
}

int CpuQuota(const std::string& root) {
  int cpus = INT_MAX;
  const CgroupFolders folders = FindCgroup(root, "cpu");
  for (const std::string& folder : folders.v1) {
    const auto quota = ReadNumber(folder + "/cpu.cfs_quota_us");
    const auto period = ReadNumber(folder + "/cpu.cfs_period_us");
    if (quota && period) cpus = std::min(cpus, WholeCpus(*quota, *period));
  }
  for (const std::string& folder : folders.v2) {
    const auto text = ReadSystemFile(folder + "/cpu.max");
    if (!text) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    int64_t quota = 0;
    int64_t period = 0;
    // "max 100000" is no quota.
    if (words.size() == 2 && absl::SimpleAtoi(words[0], &quota) &&
        absl::SimpleAtoi(words[1], &period)) {
      cpus = std::min(cpus, WholeCpus(quota, period));
    }
  }
  return cpus;
}

int DefaultThreads() {
  return std::max(1, std::min(CountPhysicalCores(AllowedCpus()), CpuQuota()));
}

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view list) {
  std::vector<int> cpus;
  std::set<int> seen;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    const bool is_range = part.find('-') != absl::string_view::npos;
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(range.first, &first) ||
        !absl::SimpleAtoi(is_range ? range.second : range.first, &last)) {
      return ListError(list,
                       absl::StrCat("'", part, "' is no number or range"));
    }
    if (first < 0 || last < first || last >= kMaxCpus) {
      return ListError(list, absl::StrCat("'", part, "' is out of range"));
    }
    for (int cpu = first; cpu <= last; ++cpu) {
      if (!seen.insert(cpu).second) {
        return ListError(list, absl::StrCat("CPU ", cpu, " comes twice"));
      }
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

}  // namespace weft
