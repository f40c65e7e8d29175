// Every kernel has something to be measured on, and runs on it.
#include "benchmarks/kernels/kernel_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "benchmarks/kernels/kernel_memory.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"

namespace weft {
namespace {

CaseSizes Tiny() {
  CaseSizes sizes;
  sizes.columns = 256;
  sizes.inner = 128;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  sizes.head_dim = 32;
  sizes.context = 64;
  return sizes;
}

TEST(KernelCasesTest, EveryKernelThatRunsHereHasACase) {
  for (const auto& row : AllKernels()) {
    // oneDNN's rows refuse all where the library differs from ours.
    if (!RunsHere(row->isa()) || absl::StrContains(row->name(), "onednn")) {
      continue;
    }
    // Some are for many rows alone.
    std::string why;
    EXPECT_FALSE(CasesOf(*row, 1, Tiny(), &why).empty() &&
                 CasesOf(*row, 64, Tiny(), &why).empty())
        << row->name() << ": " << why;
  }
}

TEST(KernelCasesTest, NamesBeginWithTheKernelsAndAreUnique) {
  std::set<std::string> names;
  for (const auto& row : AllKernels()) {
    std::string why;
    for (const KernelCase& found : CasesOf(*row, 1, Tiny(), &why)) {
      EXPECT_EQ(found.name.rfind(row->name(), 0), 0u) << found.name;
      EXPECT_TRUE(names.insert(found.name).second) << found.name << " twice";
    }
  }
}

// One case of each row; with copies, and with more threads than rows.
TEST(KernelCasesTest, EveryKernelRunsOnItsCase) {
  auto threads = ThreadPool::Create(2);
  ASSERT_TRUE(threads.ok()) << threads.status();
  for (const auto& row : AllKernels()) {
    if (!RunsHere(row->isa())) continue;
    std::string why;
    const std::vector<KernelCase> cases = CasesOf(*row, 7, Tiny(), &why);
    if (cases.empty()) continue;
    SCOPED_TRACE(cases.front().name);
    auto memory = KernelMemory::Create(cases.front(), 1 << 16, threads->get());
    ASSERT_TRUE(memory.ok()) << memory.status();
    (*memory)->Run();
    (*memory)->Run();
  }
}

}  // namespace
}  // namespace weft
