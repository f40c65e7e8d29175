#include "runtime/machine/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "runtime/machine/arena.h"
#include "tests/runtime/machine/fake_system.h"

namespace weft {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

constexpr char kMemInfo[] =
    "MemTotal:       2097152 kB\nMemFree:         131072 kB\n"
    "MemAvailable:   1048576 kB\n";
constexpr char kMountsV1[] =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup "
    "rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr char kMountsV2[] =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(AvailableMemory, IsWhatTheSystemHasWhereNoGroupLimits) {
  FakeSystem system;
  EXPECT_EQ(AvailableMemory(system.root()),
            std::numeric_limits<int64_t>::max());
  system.Write("/proc/meminfo", kMemInfo);
  EXPECT_EQ(AvailableMemory(system.root()), 1024 * kMiB);
  system.Write("/proc/self/cgroup", "0::/a\n");
  system.Write("/proc/self/mountinfo", kMountsV2);
  system.Write("/sys/fs/cgroup/a/memory.max", "max\n");
  system.Write("/sys/fs/cgroup/a/memory.current", "5000000\n");
  EXPECT_EQ(AvailableMemory(system.root()), 1024 * kMiB);
}

TEST(AvailableMemory, RespectsTheTightestGroupOfVersion2) {
  FakeSystem system;
  system.Write("/proc/meminfo", kMemInfo);
  system.Write("/proc/self/cgroup", "0::/outer/inner\n");
  system.Write("/proc/self/mountinfo", kMountsV2);
  system.Write("/sys/fs/cgroup/outer/memory.max", "209715200\n");
  system.Write("/sys/fs/cgroup/outer/memory.current", "104857600\n");
  system.Write("/sys/fs/cgroup/outer/inner/memory.max", "524288000\n");
  system.Write("/sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
  EXPECT_EQ(AvailableMemory(system.root()), 100 * kMiB);
}

TEST(AvailableMemory, CountsFilePagesOfTheGroupAsFree) {
  FakeSystem system;
  system.Write("/proc/meminfo", kMemInfo);
  system.Write("/proc/self/cgroup", "0::/a\n");
  system.Write("/proc/self/mountinfo", kMountsV2);
  system.Write("/sys/fs/cgroup/a/memory.max", "209715200\n");
  system.Write("/sys/fs/cgroup/a/memory.current", "157286400\n");
  system.Write("/sys/fs/cgroup/a/memory.stat",
               "anon 1\ninactive_file 31457280\nactive_file 20971520\n");
  EXPECT_EQ(AvailableMemory(system.root()), 100 * kMiB);
}

TEST(AvailableMemory, RespectsVersion1BesideAnEmptyVersion2) {
  FakeSystem system;
  system.Write("/proc/meminfo", kMemInfo);
  system.Write("/proc/self/cgroup",
               "9:name=systemd:/\n4:memory:/box/one\n0::/\n");
  system.Write("/proc/self/mountinfo", kMountsV1);
  const std::string folder = "/sys/fs/cgroup/memory";
  system.Write(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  system.Write(folder + "/memory.usage_in_bytes", "1\n");
  system.Write(folder + "/box/memory.limit_in_bytes", "104857600\n");
  system.Write(folder + "/box/memory.usage_in_bytes", "73400320\n");
  system.Write(folder + "/box/memory.stat",
               "inactive_file 7\ntotal_inactive_file 20971520\n");
  EXPECT_EQ(AvailableMemory(system.root()), 50 * kMiB);
}

TEST(AvailableMemory, FindsTheGroupInsideAContainer) {
  // The mount shows only the container's own part of the hierarchy.
  FakeSystem system;
  system.Write("/proc/meminfo", kMemInfo);
  system.Write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  system.Write("/proc/self/mountinfo",
               "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup "
               "cgroup rw,memory\n");
  system.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "10485760\n");
  system.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "4194304\n");
  EXPECT_EQ(AvailableMemory(system.root()), 6 * kMiB);
}

TEST(AvailableMemory, IsNotNegativeAndSurvivesNonsense) {
  FakeSystem system;
  system.Write("/proc/meminfo", "MemAvailable: lots\nMemAvailable\n\n:\n");
  system.Write("/proc/self/cgroup", "0::/../..\n\n:::\nx\n");
  system.Write("/proc/self/mountinfo",
               std::string("x - y\n - \n29 23 0:26 /\n") + kMountsV2);
  system.Write("/sys/fs/cgroup/memory.max", "100\n");
  system.Write("/sys/fs/cgroup/memory.current", "200\n");
  EXPECT_EQ(AvailableMemory(system.root()), 0);
}

TEST(AvailableMemory, OfThisSystemIsPositive) {
  EXPECT_GT(AvailableMemory(), 0);
}

TEST(PeakResidentBytes, GrowsWithWhatIsTouched) {
  const int64_t before = PeakResidentBytes();
  ASSERT_GT(before, 0);
  auto arena = Arena::Create(64 * kMiB, "test");
  ASSERT_TRUE(arena.ok());
  std::memset(arena->data(), 1, arena->bytes());
  EXPECT_GE(PeakResidentBytes(), before + 32 * kMiB);
}

}  // namespace
}  // namespace weft
