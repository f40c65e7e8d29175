#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text_format.h"
#include "ops/op_table.h"
#include "passes/lifetimes.h"
#include "passes/passes.h"
#include "tests/passes/random_graph.h"

namespace weft {
namespace {

int64_t Peak(const Graph& graph) {
  return PlanArena(LifetimesOf(graph).records, PlanStrategy::kNoReuse)
      ->lower_bound;
}

// Places of nodes in the order.
std::vector<int> PlacesOf(const Graph& graph) {
  std::vector<int> places(graph.node_count(), -1);
  int place = 0;
  for (NodeId id : graph.order()) places[id] = place++;
  return places;
}

TEST(Schedule, RandomGraphsStayTheSameGraphsAndNeedNoMoreMemory) {
  int lowered = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Graph graph = MakeRandomModel(seed, true).graph;
    const std::vector<NodeId> before = graph.order();
    const int64_t peak = Peak(graph);
    ASSERT_TRUE(Schedule(graph, {}).ok());
    ASSERT_TRUE(VerifyGraph(graph).ok()) << "seed " << seed;
    std::vector<NodeId> a = before, b = graph.order();
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    EXPECT_EQ(a, b) << "seed " << seed;
    EXPECT_LE(Peak(graph), peak) << "seed " << seed;
    lowered += Peak(graph) < peak;

    // Reads of a version that is written over come before the write.
    const std::vector<int> places = PlacesOf(graph);
    for (NodeId write : graph.order()) {
      if (!OpOf(graph.node(write)).writes_state) continue;
      for (NodeId reader : graph.Users(graph.node(write).inputs[0])) {
        EXPECT_LE(places[reader], places[write]) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(lowered, 10) << "the pass does something";
}

TEST(Schedule, WriteWaitsForTheReadersOfWhatItReplaces) {
  // Run early, the write would free %wide.
  Graph graph = ParseGraph(R"(
graph t tokens<=8 rows<=8 context<=64
  $table = weight  f32[10,64]
  $up = weight  f32[1024,64]
  %ids = input ids  i32[T]
  %positions = input positions  i32[T]
  %sequence = input sequence  i32[T]
  %k0 = state k  f16[S,32,32]{keys}
  %0 = embed(%ids, $table)  f32[T,64]
  %wide = matmul(%0, $up)  f32[T,1024]
  %1 = matmul(%0, $up)  f32[T,1024]
  %2 = attention_scores(%1, %k0, %positions, %sequence) heads=32 scale=0.25  f32[T,32,S]
  %k1 = kv_write(%k0, %wide, %positions, %sequence)  f16[S,32,32]{keys}
  output k = %k1
  output scores = %2
)")
                    .value();
  ASSERT_TRUE(VerifyGraph(graph).ok());
  ASSERT_TRUE(Schedule(graph, {}).ok());
  EXPECT_TRUE(VerifyGraph(graph).ok());
  EXPECT_STREQ(graph.node(graph.order().back()).op->name, "kv_write");
}

}  // namespace
}  // namespace weft
