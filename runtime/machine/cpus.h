// Which CPUs this process may use, and how many threads fit them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Threads that compute without getting in each other's way: the physical cores
// that the affinity mask allows (SMT siblings counted once), at most the whole
// CPUs that the control groups' quota grants, at least 1.
int DefaultThreads();

// The parts of it. `root` stands before every path, for tests.
std::vector<int> AllowedCpus();
int CountPhysicalCores(absl::Span<const int> cpus,
                       const std::string& root = "");
// CPUs' worth of time per period, rounded down, at least 1; INT_MAX: no quota.
// Rounded down because threads that spin through a period's quota stall
// together for the rest of it.
int CpuQuota(const std::string& root = "");

// CPU numbers of a list like "0-3,8", as the kernel and --affinity write them,
// in the order given. Errors: what is no such list, a CPU twice, numbers of
// 65536 and above.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view list);

}  // namespace weft
