// What the pass `shard` leaves of a graph for each rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ops/kernels/cpu.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/passes.h"

namespace weft {
namespace {

Graph Sharded(const std::string& body, int64_t rank, int64_t ranks) {
  absl::StatusOr<Graph> graph =
      ParseGraph("graph t tokens<=4 rows<=4 context<=64\n" + body);
  EXPECT_TRUE(graph.ok()) << graph.status();
  PassOptions options;
  options.shard = {rank, ranks};
  EXPECT_TRUE(Shard(*graph, options).ok());
  EXPECT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  return graph->Compact();
}

std::string TypeOf(const Graph& graph, const std::string& name) {
  const ValueId id = graph.FindValue(name);
  return id == kNone ? "none" : graph.value(id).type.ToString();
}

int Gathers(const Graph& graph) {
  int count = 0;
  for (NodeId id : graph.order()) count += graph.node(id).Is(kAllGatherOp);
  return count;
}

constexpr char kFeedForward[] =
    "  %0 = input x  f32[T,64]\n"
    "  $gate = weight  q8_0[128,64]\n"
    "  $up = weight  q8_0[128,64]\n"
    "  $down = weight  q8_0[64,128]\n"
    "  %1 = quantize_rows(%0)  q8r[T,64]\n"
    "  %2 = matmul(%1, $gate)  f32[T,128]\n"
    "  %3 = matmul(%1, $up)  f32[T,128]\n"
    "  %4 = silu(%2)  f32[T,128]\n"
    "  %5 = mul(%4, %3)  f32[T,128]\n"
    "  %6 = quantize_rows(%5)  q8r[T,128]\n"
    "  %7 = matmul(%6, $down)  f32[T,64]\n"
    "  %8 = add(%7, %0)  f32[T,64]\n"
    "  output y = %8\n";

TEST(Shard, OneRankAloneHasTheGraphAsItIs) {
  const Graph graph = Sharded(kFeedForward, 0, 1);
  EXPECT_EQ(Gathers(graph), 0);
  EXPECT_EQ(TypeOf(graph, "gate"), "q8_0[128,64]");
}

TEST(Shard, ProductsAreCutByOutputColumnsAndGatheredWhenRounded) {
  for (int64_t rank : {0, 1}) {
    const Graph graph = Sharded(kFeedForward, rank, 2);
    EXPECT_EQ(TypeOf(graph, "gate"), "q8_0[64,64]");
    EXPECT_EQ(TypeOf(graph, "up"), "q8_0[64,64]");
    EXPECT_EQ(TypeOf(graph, "down"), "q8_0[32,128]");
    // What `down` reads, rounded; and its result, for the residual.
    EXPECT_EQ(Gathers(graph), 2);
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (!node.Is(kAllGatherOp)) continue;
      EXPECT_EQ(node.attributes.As<AllGatherAttributes>().rank, rank);
    }
  }
}

TEST(Shard, SharesDifferByOneUnitOfWholeBlocks) {
  // Four blocks of 32 columns by three ranks.
  EXPECT_EQ(TypeOf(Sharded(kFeedForward, 0, 3), "gate"), "q8_0[32,64]");
  EXPECT_EQ(TypeOf(Sharded(kFeedForward, 1, 3), "gate"), "q8_0[32,64]");
  EXPECT_EQ(TypeOf(Sharded(kFeedForward, 2, 3), "gate"), "q8_0[64,64]");
}

std::string Attention(int heads, int kv_heads) {
  const std::string q = std::to_string(32 * heads);
  const std::string kv = std::to_string(32 * kv_heads);
  const std::string state = "f16[S," + std::to_string(kv_heads) + ",32]";
  return "  %0 = input x  f32[T,64]\n"
         "  %p = input positions  i32[T]\n"
         "  %s = input sequence  i32[T]\n"
         "  $q = weight  f32[" +
         q +
         ",64]\n"
         "  $k = weight  f32[" +
         kv +
         ",64]\n"
         "  $v = weight  f32[" +
         kv +
         ",64]\n"
         "  $norm = weight  f32[32]\n"
         "  %keys = state keys  " +
         state +
         "{keys}\n"
         "  %values = state values  " +
         state +
         "{values}\n"
         "  %1 = matmul(%0, $q)  f32[T," +
         q +
         "]\n"
         "  %2 = matmul(%0, $k)  f32[T," +
         kv +
         "]\n"
         "  %3 = matmul(%0, $v)  f32[T," +
         kv +
         "]\n"
         "  %4 = rms_norm(%1, $norm) eps=1e-05 heads=" +
         std::to_string(heads) + "  f32[T," + q +
         "]\n"
         "  %5 = kv_write(%keys, %2, %p, %s)  " +
         state +
         "{keys}\n"
         "  %6 = kv_write(%values, %3, %p, %s)  " +
         state +
         "{values}\n"
         "  %7 = attention(%4, %5, %6, %p, %s) heads=" +
         std::to_string(heads) + " scale=1.0  f32[T," + q +
         "]\n"
         "  output keys = %5\n  output values = %6\n  output y = %7\n";
}

TEST(Shard, AttentionAndItsCacheAreCutByHeads) {
  const Graph graph = Sharded(Attention(8, 4), 1, 2);
  EXPECT_EQ(TypeOf(graph, "q"), "f32[128,64]");
  EXPECT_EQ(TypeOf(graph, "k"), "f32[64,64]");
  EXPECT_EQ(TypeOf(graph, "norm"), "f32[32]");
  EXPECT_EQ(TypeOf(graph, "keys"), "f16[S,2,32]{keys}");
  EXPECT_EQ(Gathers(graph), 1);
}

TEST(Shard, FewerHeadsOfKeysThanRanksStayWhole) {
  const Graph graph = Sharded(Attention(8, 2), 0, 4);
  EXPECT_EQ(TypeOf(graph, "keys"), "f16[S,2,32]{keys}");
  EXPECT_EQ(TypeOf(graph, "q"), "f32[256,64]");
  EXPECT_EQ(Gathers(graph), 0);
}

TEST(Shard, OneHeadOfKeysIsEveryRanksAndQueriesAreCut) {
  const Graph graph = Sharded(Attention(8, 1), 3, 4);
  EXPECT_EQ(TypeOf(graph, "keys"), "f16[S,1,32]{keys}");
  EXPECT_EQ(TypeOf(graph, "q"), "f32[64,64]");
  // K and V, made in parts, and the result.
  EXPECT_EQ(Gathers(graph), 1);
}

TEST(Shard, ExpertsAreCutByTheColumnsOfEach) {
  const Graph graph = Sharded(
      "  %0 = input x  f32[T,64]\n"
      "  $router = weight  f32[4,64]\n"
      "  $up = weight  f32[256,64]\n"
      "  $down = weight  f32[256,64]\n"
      "  %1 = matmul(%0, $router)  f32[T,4]\n"
      "  %2, %3 = top_k(%1) k=2 normalize=0  i32[T,2], f32[T,2]\n"
      "  %4 = expert_matmul(%0, $up, %2) experts=4  f32[T,128]\n"
      "  %5 = silu(%4)  f32[T,128]\n"
      "  %6 = expert_matmul(%5, $down, %2) experts=4  f32[T,128]\n"
      "  %7 = weighted_sum(%6, %3)  f32[T,64]\n"
      "  output y = %7\n",
      0, 2);
  std::map<std::string, int> types;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.Is(kSliceRowsOp)) {
      EXPECT_EQ(node.attributes.As<SliceRowsAttributes>().parts, 4);
      ++types[graph.value(node.outputs[0]).type.ToString()];
    }
    if (node.Is(kAllGatherOp)) {
      ++types[graph.value(node.outputs[0]).type.ToString()];
    }
  }
  // Half of the columns of each of four experts, twice; what `down` reads in
  // two parts; and the result.
  EXPECT_THAT(types,
              testing::UnorderedElementsAre(testing::Pair("f32[128,64]", 2),
                                            testing::Pair("f32[T,128]", 1),
                                            testing::Pair("f32[T,64]", 1)));
}

TEST(Shard, SlicesOfAProductAreCutEachByItself) {
  const Graph graph = Sharded(
      "  %0 = input x  f32[T,64]\n"
      "  $w = weight  f32[256,64]\n"
      "  %1 = matmul(%0, $w)  f32[T,256]\n"
      "  %2 = slice(%1) begin=0 size=128  f32[T,128]\n"
      "  %3 = slice(%1) begin=128 size=128  f32[T,128]\n"
      "  %4 = silu(%2)  f32[T,128]\n"
      "  %5 = mul(%4, %3)  f32[T,128]\n"
      "  output y = %5\n",
      1, 2);
  EXPECT_EQ(Gathers(graph), 1);
  EXPECT_EQ(TypeOf(graph, "w"), "f32[64,64]");
}

}  // namespace
}  // namespace weft
