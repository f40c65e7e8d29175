#include "runtime/machine/cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <string>

#include "tests/runtime/machine/fake_system.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void WriteSiblings(FakeSystem* system, int cpu, const std::string& list) {
  system->Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                    "/topology/thread_siblings_list",
                list + "\n");
}

TEST(CountPhysicalCores, CountsSiblingsOnce) {
  FakeSystem system;
  WriteSiblings(&system, 0, "0,4");
  WriteSiblings(&system, 1, "1,5");
  WriteSiblings(&system, 4, "0,4");
  WriteSiblings(&system, 5, "1,5");
  EXPECT_EQ(CountPhysicalCores({0, 1, 4, 5}, system.root()), 2);
  EXPECT_EQ(CountPhysicalCores({0, 4}, system.root()), 1);
  EXPECT_EQ(CountPhysicalCores({0, 5}, system.root()), 2);
}

TEST(CountPhysicalCores, TakesCpusWithoutTopologyAsCores) {
  FakeSystem system;
  EXPECT_EQ(CountPhysicalCores({0, 1, 2}, system.root()), 3);
}

TEST(CpuQuota, IsTheTightestOfAllGroupsInWholeCpus) {
  FakeSystem system;
  EXPECT_EQ(CpuQuota(system.root()), INT_MAX);
  system.Write("/proc/self/cgroup", "0::/a/b\n");
  system.Write("/proc/self/mountinfo",
               "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  system.Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuQuota(system.root()), INT_MAX);
  system.Write("/sys/fs/cgroup/a/cpu.max", "350000 100000\n");
  EXPECT_EQ(CpuQuota(system.root()), 3);
  system.Write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(CpuQuota(system.root()), 1);
}

TEST(CpuQuota, OfVersion1) {
  FakeSystem system;
  system.Write("/proc/self/cgroup", "2:cpu,cpuacct:/x\n");
  system.Write("/proc/self/mountinfo",
               "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup "
               "rw,cpu,cpuacct\n");
  system.Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  system.Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(system.root()), INT_MAX);
  system.Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(CpuQuota(system.root()), 2);
  system.Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "0\n");
  EXPECT_EQ(CpuQuota(system.root()), INT_MAX);
}

TEST(DefaultThreads, IsAtLeastOneAndAtMostTheCpusAllowed) {
  const auto cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), static_cast<int>(cpus.size()));
}

TEST(ParseCpuList, ReadsNumbersAndRangesInOrder) {
  EXPECT_THAT(*ParseCpuList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseCpuList("8,0-2,5"), ElementsAre(8, 0, 1, 2, 5));
  EXPECT_THAT(*ParseCpuList("7-7"), ElementsAre(7));
}

TEST(ParseCpuList, RefusesOthersWithTheReason) {
  for (const char* list : {"", ",", "1,", "a", "1-", "-1", "1-2-3", "1 2"}) {
    EXPECT_THAT(std::string(ParseCpuList(list).status().message()),
                HasSubstr("is no number or range"))
        << list;
  }
  for (const char* list : {"3-1", "65536", "0-2000000000"}) {
    EXPECT_THAT(std::string(ParseCpuList(list).status().message()),
                HasSubstr("out of range"))
        << list;
  }
  EXPECT_THAT(std::string(ParseCpuList("0-3,2").status().message()),
              HasSubstr("CPU 2 comes twice"));
}

}  // namespace
}  // namespace weft
