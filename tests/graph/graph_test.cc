#include "graph/graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_rules.h"

namespace weft {
namespace {

using testing::ElementsAre;

// %0 and its reader %1, which two nodes read, one of them twice.
constexpr char kDiamond[] = R"(
  $w = weight f32[4,8]
  %0 = input x  f32[T,8]
  %1 = copy(%0)  f32[T,8]  : first
  %2 = copy(%1, %1)  f32[T,8]  : left
  %3 = copy(%1)  f32[T,8]  : right
  %4 = copy(%2, %3)  f32[T,8]  : join
  output y = %4
)";

ValueId Result(const Graph& graph, const std::string& name) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).name == name) return graph.node(id).outputs[0];
  }
  ADD_FAILURE() << "no node " << name;
  return kNone;
}

NodeId NodeOf(const Graph& graph, const std::string& name) {
  return graph.value(Result(graph, name)).producer;
}

TEST(GraphTest, UsersAreNamedOnceEachInOrderOfExecution) {
  const Graph graph = TestGraph(kDiamond);
  EXPECT_THAT(graph.Users(Result(graph, "first")),
              ElementsAre(NodeOf(graph, "left"), NodeOf(graph, "right")));
  EXPECT_THAT(graph.Users(Result(graph, "join")), ElementsAre());
}

TEST(GraphTest, OnlyUserIsTheOneReadAndNothingElse) {
  const Graph graph = TestGraph(kDiamond);
  EXPECT_EQ(graph.OnlyUser(graph.FindValue("x")), NodeOf(graph, "first"));
  EXPECT_EQ(graph.OnlyUser(Result(graph, "right")), NodeOf(graph, "join"));
  EXPECT_EQ(graph.OnlyUser(Result(graph, "first")), kNone) << "two readers";
  EXPECT_EQ(graph.OnlyUser(Result(graph, "join")), kNone) << "a graph output";
  EXPECT_EQ(graph.OnlyUser(graph.FindValue("w")), kNone) << "no reader";

  Graph twice = TestGraph(R"(
  %0 = input x  f32[T,8]
  %1 = copy(%0, %0)  f32[T,8]
  output y = %1)");
  EXPECT_EQ(twice.OnlyUser(twice.FindValue("x")), kNone) << "read twice";
}

TEST(GraphTest, AValueThatIsReadAndAnOutputHasNoOnlyUser) {
  Graph graph = TestGraph(kDiamond);
  graph.AddOutput("also", Result(graph, "right"));
  EXPECT_EQ(graph.OnlyUser(Result(graph, "right")), kNone);
}

TEST(GraphTest, ReplaceUsesChangesEveryOperandAndOutput) {
  Graph graph = TestGraph(kDiamond);
  const ValueId x = graph.FindValue("x");
  const ValueId first = Result(graph, "first");
  graph.AddOutput("first", first);
  graph.ReplaceUses(first, x);
  EXPECT_THAT(graph.Users(first), ElementsAre());
  EXPECT_THAT(graph.node(NodeOf(graph, "left")).inputs, ElementsAre(x, x));
  EXPECT_THAT(graph.node(NodeOf(graph, "right")).inputs, ElementsAre(x));
  EXPECT_EQ(graph.outputs()[1].second, x);
}

TEST(GraphTest, ProducerOfAsksForTheOp) {
  const Graph graph = TestGraph(kDiamond);
  const ValueId first = Result(graph, "first");
  EXPECT_EQ(graph.ProducerOf(first, kCopy), NodeOf(graph, "first"));
  EXPECT_EQ(graph.ProducerOf(first, kPair), kNone);
  EXPECT_EQ(graph.ProducerOf(graph.FindValue("x"), kCopy), kNone);
  EXPECT_EQ(graph.Producer(graph.FindValue("x")), nullptr);
}

TEST(GraphTest, EraseDeadTakesWholeChainsAndLeavesWhatOutputsNeed) {
  Graph graph = TestGraph(R"(
  %0 = input x  f32[T,8]
  %1 = copy(%0)  f32[T,8]
  %2 = copy(%1)  f32[T,8]
  %3 = copy(%0)  f32[T,8]  : live
  %4, %5 = pair(%3)  f32[T,8], f32[T,8]  : half
  output y = %5)");
  EXPECT_EQ(graph.EraseDead(), 2);
  EXPECT_THAT(graph.order(),
              ElementsAre(NodeOf(graph, "live"), NodeOf(graph, "half")));
  EXPECT_EQ(graph.EraseDead(), 0);
}

TEST(GraphTest, EraseDeadKeepsWritesOfStates) {
  Graph graph = TestGraph(R"(
  %0 = input x  f32[T,8]
  %1 = state s  f32[S,8]
  %2 = write(%1, %0)  f32[S,8]
  output s = %2)");
  EXPECT_EQ(graph.EraseDead(), 0);
}

TEST(GraphTest, NodesAreInsertedBeforeAnother) {
  Graph graph = TestGraph(kDiamond);
  const NodeId left = NodeOf(graph, "left");
  const NodeId added =
      graph.AddNode(Node(kCopy, {graph.FindValue("x")}, {}, "new"),
                    {graph.value(graph.FindValue("x")).type}, left);
  EXPECT_THAT(graph.order(),
              ElementsAre(NodeOf(graph, "first"), added, left,
                          NodeOf(graph, "right"), NodeOf(graph, "join")));
}

TEST(GraphTest, CompactDropsWhatIsErasedOrUnusedAndMeansTheSame) {
  Graph graph = TestGraph(kDiamond);
  graph.ReplaceUses(Result(graph, "first"), graph.FindValue("x"));
  graph.EraseDead();
  const Graph compact = graph.Compact();
  EXPECT_EQ(Dump(compact), R"(graph test tokens<=4 rows<=4 context<=64
  %0 = input x  f32[T,8]
  %1 = copy(%0, %0)  f32[T,8]  : left
  %2 = copy(%0)  f32[T,8]  : right
  %3 = copy(%1, %2)  f32[T,8]  : join
  output y = %3
)");
  EXPECT_EQ(compact.node_count(), 3);
  EXPECT_EQ(compact.value_count(), 4);
  EXPECT_EQ(VerifyMessage(compact), "");
}

TEST(GraphTest, CompactKeepsInputsThatNothingReads) {
  const Graph graph = TestGraph(R"(
  %0 = input unread  i32[T]
  %1 = input x  f32[T,8]
  %2 = copy(%1)  f32[T,8]
  output y = %2)");
  EXPECT_NE(graph.Compact().FindValue("unread"), kNone);
}

TEST(GraphTest, CompactKeepsPlaces) {
  Graph graph = TestGraph(R"(
  %0 = input x  f32[T,8]
  %1 = copy(%0)  f32[T,8]
  %2 = copy(%0)  f32[T,8]@128  scratch@64
  output y = %2)");
  graph.EraseDead();
  const Graph compact = graph.Compact();
  const NodeId id = compact.order()[0];
  EXPECT_EQ(compact.node(id).scratch_offset, 64);
  EXPECT_EQ(compact.value(compact.node(id).outputs[0]).offset, 128);
}

TEST(GraphTest, BytesOfAValueCountWholeBlocks) {
  const Bounds bounds = {3, 3, 64};
  EXPECT_EQ(ValueBytes({DType::kF32, Shape{Dim::Tokens(), Dim::Number(8)}, ""},
                       bounds),
            3 * 8 * 4);
  EXPECT_EQ(
      ValueBytes({DType::kQ4_0, Shape{Dim::Number(2), Dim::Number(64)}, ""},
                 bounds),
      2 * 2 * 18);
  EXPECT_EQ(
      ValueBytes({DType::kQ6_K, Shape{Dim::Number(2), Dim::Number(256)}, ""},
                 bounds),
      2 * 210);
}

}  // namespace
}  // namespace weft
