#include "runtime/plan/large_tables.h"

#include <string>

#include "gtest/gtest.h"
#include "ops/op_table.h"

namespace weft {
namespace {

// A table of 1.2 GB or one of 4 MB, with further nodes.
Graph WithTable(const std::string& rows, const std::string& more = "") {
  const auto graph =
      ParseGraph("graph tables tokens<=4 rows<=4 context<=8\n$t = weight f32[" +
                 rows + ",1024]\n%0 = input ids i32[T]\n" +
                 "%1 = embed(%0, $t) f32[T,1024]\n" + more + "output y = %1");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

TEST(LargeTables, StayInTheFileIfTheyAreOnlyLookedUpIn) {
  const Graph large = WithTable("300000");
  EXPECT_TRUE(StaysInFile(large, large.FindValue("t")));
  EXPECT_EQ(BytesLeftInFile(large), int64_t{300000} * 1024 * 4);

  const Graph small = WithTable("1024");
  EXPECT_FALSE(StaysInFile(small, small.FindValue("t")));
  EXPECT_EQ(BytesLeftInFile(small), 0);

  const Graph tied = WithTable(
      "300000", "%2 = matmul(%1, $t) f32[T,300000]\noutput logits = %2\n");
  EXPECT_FALSE(StaysInFile(tied, tied.FindValue("t")));
  EXPECT_EQ(BytesLeftInFile(tied), 0);
}

}  // namespace
}  // namespace weft
