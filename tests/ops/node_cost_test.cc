// Costs of nodes, counted by hand.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/op_table.h"

namespace weft {
namespace {

constexpr char kSources[] = R"(graph cost tokens<=8 rows<=8 context<=64
  $f = weight f32[64,32]
  $q = weight q4_0[64,32]
  $n = weight f32[32]
  $experts = weight q4_0[128,32]
  %0 = input ids i32[T]
  %1 = input positions i32[T]
  %2 = input sequence i32[T]
  %3 = input x f32[T,32]
  %4 = input rows i32[R]
  %5 = state keys f16[S,2,16]{keys}
  %6 = state values f16[S,2,16]{values}
)";

Cost CostOf(const std::string& line, const Bounds& bounds) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(kSources, line, "\n"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return NodeCost(*graph, graph->node(graph->order()[0]), bounds);
}

// 4 tokens, 2 rows of output, 16 positions.
constexpr Bounds kStep = {4, 2, 16};

TEST(NodeCost, AProductReadsItsWeightOnce) {
  const Cost floats = CostOf("%7 = matmul(%3, $f) f32[T,64]", kStep);
  EXPECT_EQ(floats.bytes, 64 * 32 * 4 + 4 * 32 * 4 + 4 * 64 * 4);
  EXPECT_EQ(floats.operations, 2 * 4 * 32 * 64);
  const Cost blocks = CostOf("%7 = matmul(%3, $q) f32[T,64]", kStep);
  EXPECT_EQ(blocks.bytes, 64 * 18 + 4 * 32 * 4 + 4 * 64 * 4);
  EXPECT_EQ(blocks.operations, floats.operations);
}

TEST(NodeCost, TablesAreReadByTheRow) {
  const Cost embed = CostOf("%7 = embed(%0, $f) f32[T,32]", kStep);
  EXPECT_EQ(embed.bytes, 4 * 4 + 4 * 32 * 4 + 4 * 32 * 4);
  const Cost taken = CostOf("%7 = take_rows(%3, %4) f32[R,32]", kStep);
  EXPECT_EQ(taken.bytes, 2 * 32 * 4 + 2 * 4 + 2 * 32 * 4);
}

TEST(NodeCost, ExpertsThatCannotBeChosenAreNotRead) {
  const std::string lines =
      "%7, %8 = top_k(%3) k=2 normalize=1 i32[T,2], f32[T,2]\n"
      "%9 = expert_matmul(%3, $experts, %7) experts=32 f32[T,8]";
  const auto cost = [&](int64_t tokens) {
    absl::StatusOr<Graph> graph =
        ParseGraph(absl::StrCat(kSources, lines, "\n"));
    EXPECT_TRUE(graph.ok()) << graph.status();
    return NodeCost(*graph, graph->node(graph->order()[1]),
                    {tokens, tokens, 16});
  };
  const int64_t expert = 4 * 18;  // four rows of a block
  const int64_t row = 32 * 4 + 2 * 4 + 8 * 4;
  EXPECT_EQ(cost(1).bytes, 2 * expert + row);
  EXPECT_EQ(cost(4).bytes, 8 * expert + 4 * row);
  EXPECT_EQ(cost(17).bytes, 32 * expert + 17 * row);
  EXPECT_EQ(cost(4).operations, 2 * 4 * 2 * 4 * 32);
}

TEST(NodeCost, StateIsWrittenByTheRowAndReadAsFarAsTheContextGoes) {
  const Cost write =
      CostOf("%7 = kv_write(%5, %3, %1, %2) f16[S,2,16]{keys}", kStep);
  EXPECT_EQ(write.bytes, 4 * 32 * 4 + 2 * 4 * 4 + 4 * 32 * 2);
  const std::string attention =
      "%7 = attention(%3, %5, %6, %1, %2) heads=2 scale=1.0 f32[T,32]";
  const Cost read = CostOf(attention, kStep);
  const int64_t positions = 16;
  EXPECT_EQ(read.bytes,
            4 * 32 * 4 + 2 * positions * 32 * 2 + 2 * 4 * 4 + 4 * 32 * 4);
  EXPECT_EQ(read.operations, 2 * 2 * 4 * 32 * positions);
  EXPECT_EQ(CostOf(attention, {4, 2, 32}).operations, 2 * read.operations);
}

TEST(NodeCost, ViewsAreFreeAndElementsCountOnce) {
  const Cost view = CostOf("%7 = slice(%3) begin=0 size=16 f32[T,16]", kStep);
  EXPECT_EQ(view.bytes, 0);
  EXPECT_EQ(view.operations, 0);
  EXPECT_EQ(CostOf("%7 = add(%3, %3) f32[T,32]", kStep).operations, 4 * 32);
}

}  // namespace
}  // namespace weft
