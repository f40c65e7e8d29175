#include "passes/match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/insert_before.h"

namespace weft {
namespace {

// Lines after an embedding %1 of 16 columns.
Graph ReadGraph(absl::string_view lines) {
  absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrCat("graph t tokens<=8 rows<=8 context<=64\n"
                              "$table = weight f32[10,16]\n"
                              "$a = weight f32[16,16]\n"
                              "$b = weight f32[16,16]\n"
                              "$v = weight f32[16]\n"
                              "%0 = input ids i32[T]\n"
                              "%1 = embed(%0, $table) f32[T,16]\n",
                              lines));
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(VerifyGraph(*graph).message(), "");
  return *std::move(graph);
}

// The node that makes a graph output.
NodeId Root(const Graph& graph, const std::string& output = "y") {
  for (const auto& [name, value] : graph.outputs()) {
    if (name == output) return graph.value(value).producer;
  }
  ADD_FAILURE() << "no output " << output;
  return kNone;
}

TEST(Match, CapturesValuesAndNodes) {
  const Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "%3 = silu(%2) f32[T,16]\n"
      "output y = %3\n");
  ValueId x = kNone, weight = kNone;
  NodeId product = kNone;
  ASSERT_TRUE(Match(
      graph, Root(graph),
      Op(kSiluOp, {Op(kMatmulOp, {Any(&x), Weight(&weight)}, &product)})));
  EXPECT_STREQ(graph.node(graph.value(x).producer).op->name, "embed");
  EXPECT_EQ(graph.value(weight).name, "a");
  EXPECT_STREQ(graph.node(product).op->name, "matmul");
}

TEST(Match, WantsEveryOpOfThePattern) {
  const Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "%3 = silu(%2) f32[T,16]\n"
      "output y = %3\n");
  ValueId x;
  EXPECT_FALSE(Match(graph, Root(graph), Op(kGeluOp, {Any(&x)})));
  EXPECT_FALSE(Match(graph, Root(graph), Op(kSiluOp, {Op(kAddOp, {})})));
  // A weight has no producer.
  EXPECT_FALSE(
      Match(graph, Root(graph),
            Op(kSiluOp, {Op(kMatmulOp, {Any(&x), Op(kEmbedOp, {})})})));
  // Nor has a node more operands than it has.
  EXPECT_FALSE(Match(graph, Root(graph), Op(kSiluOp, {Any(&x), Any(&x)})));
}

TEST(Match, OperandsBehindThePatternAreFree) {
  const Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "output y = %2\n");
  ValueId x;
  EXPECT_TRUE(Match(graph, Root(graph), Op(kMatmulOp, {Any(&x)})));
  EXPECT_TRUE(Match(graph, Root(graph), Op(kMatmulOp, {})));
}

TEST(Match, OnceIsOneReaderInOnePlaceAndNoOutput) {
  ValueId x;
  const Pattern pattern = Op(kAddOp, {Once(Op(kSiluOp, {Any(&x)}))});
  const auto matches = [&](absl::string_view lines) {
    const Graph graph = ReadGraph(
        absl::StrCat("%2 = silu(%1) f32[T,16]\n", lines, "output y = %3\n"));
    return Match(graph, Root(graph), pattern);
  };
  EXPECT_TRUE(matches("%3 = add(%2, %1) f32[T,16]\n"));
  // Twice by the same node, by another node, by the caller.
  EXPECT_FALSE(matches("%3 = add(%2, %2) f32[T,16]\n"));
  EXPECT_FALSE(
      matches("%3 = add(%2, %1) f32[T,16]\n"
              "%4 = gelu(%2) approximation=\"none\" f32[T,16]\n"
              "output z = %4\n"));
  EXPECT_FALSE(
      matches("%3 = add(%2, %1) f32[T,16]\n"
              "output z = %2\n"));
}

TEST(Match, OnceHoldsForWeights) {
  ValueId x, weight;
  const Pattern pattern = Op(kMatmulOp, {Any(&x), Once(Weight(&weight))});
  const Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "%3 = matmul(%2, $a) f32[T,16]\n"
      "%4 = matmul(%3, $b) f32[T,16]\n"
      "output y = %3\n"
      "output z = %4\n");
  EXPECT_FALSE(Match(graph, Root(graph, "y"), pattern));
  EXPECT_TRUE(Match(graph, Root(graph, "z"), pattern));
}

TEST(Match, SameIsTheValueThatWasCaptured) {
  ValueId x, a, b;
  const Pattern pattern = Op(kMulOp, {Op(kMatmulOp, {Any(&x), Weight(&a)}),
                                      Op(kMatmulOp, {Same(&x), Weight(&b)})});
  const Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "%3 = matmul(%1, $b) f32[T,16]\n"
      "%4 = matmul(%2, $b) f32[T,16]\n"
      "%5 = mul(%2, %3) f32[T,16]\n"
      "%6 = mul(%2, %4) f32[T,16]\n"
      "output y = %5\n"
      "output z = %6\n");
  EXPECT_TRUE(Match(graph, Root(graph, "y"), pattern));
  EXPECT_FALSE(Match(graph, Root(graph, "z"), pattern));
}

TEST(Match, EitherOrderIsTriedAsWrittenFirst) {
  ValueId x, other;
  const Pattern ordered = Op(kMulOp, {Op(kSiluOp, {Any(&x)}), Any(&other)});
  const Graph graph = ReadGraph(
      "%2 = silu(%1) f32[T,16]\n"
      "%3 = mul(%1, %2) f32[T,16]\n"
      "%4 = silu(%3) f32[T,16]\n"
      "%5 = mul(%4, %2) f32[T,16]\n"
      "output y = %3\n"
      "output z = %5\n");
  EXPECT_FALSE(Match(graph, Root(graph, "y"), ordered));
  ASSERT_TRUE(Match(graph, Root(graph, "y"), EitherOrder(ordered)));
  EXPECT_STREQ(graph.node(graph.value(other).producer).op->name, "embed");
  // Both operands are fit for both places.
  ASSERT_TRUE(Match(graph, Root(graph, "z"), EitherOrder(ordered)));
  EXPECT_STREQ(graph.node(graph.value(x).producer).op->name, "mul");
  EXPECT_STREQ(graph.node(graph.value(other).producer).op->name, "silu");
}

// What was captured before the operands were exchanged is forgotten.
TEST(Match, EitherOrderCapturesAnew) {
  ValueId x, other;
  const Pattern pattern = EitherOrder(Op(kAddOp, {Any(&x), Vector(&other)}));
  Graph graph = ReadGraph(
      "%2 = add(%1, $v) f32[T,16]\n"
      "output y = %2\n");
  // The other way round, which no rule allows but patterns need not know.
  std::swap(graph.node(Root(graph)).inputs[0],
            graph.node(Root(graph)).inputs[1]);
  ASSERT_TRUE(Match(graph, Root(graph), pattern));
  EXPECT_STREQ(graph.node(graph.value(x).producer).op->name, "embed");
  EXPECT_EQ(graph.value(other).name, "v");
}

TEST(Match, VectorsAndRowsDiffer) {
  ValueId x, other;
  const Graph graph = ReadGraph(
      "%2 = add(%1, $v) f32[T,16]\n"
      "%3 = add(%1, %2) f32[T,16]\n"
      "output y = %2\n"
      "output z = %3\n");
  const Pattern vector = Op(kAddOp, {Any(&x), Vector(&other)});
  const Pattern rows = Op(kAddOp, {Any(&x), Rows(&other)});
  EXPECT_TRUE(Match(graph, Root(graph, "y"), vector));
  EXPECT_FALSE(Match(graph, Root(graph, "y"), rows));
  EXPECT_FALSE(Match(graph, Root(graph, "z"), vector));
  EXPECT_TRUE(Match(graph, Root(graph, "z"), rows));
}

TEST(Match, OpThatAsksTheNode) {
  const Graph graph = ReadGraph(
      "%2 = gelu(%1) approximation=\"tanh\" f32[T,16]\n"
      "output y = %2\n");
  for (const char* kind : {"tanh", "none"}) {
    const Pattern pattern = OpThat(
        [kind](const Node& node) {
          const AttributeValue* value = node.attributes.Find("approximation");
          return value != nullptr && std::get<std::string>(*value) == kind;
        },
        {});
    EXPECT_EQ(Match(graph, Root(graph), pattern), kind[0] == 't');
  }
}

TEST(ForEachMatch, VisitsInOrderAndErasesWhatDies) {
  Graph graph = ReadGraph(
      "%2 = silu(%1) f32[T,16]\n"
      "%3 = silu(%2) f32[T,16]\n"
      "%4 = silu(%3) f32[T,16]\n"
      "output y = %4\n");
  // The silu above is erased when the one below has its operand, so the third
  // finds no pair.
  ValueId x;
  int visits = 0;
  ForEachMatch(graph, Op(kSiluOp, {Once(Op(kSiluOp, {Any(&x)}))}),
               [&](NodeId id) {
                 ++visits;
                 graph.node(id).Become(kGeluOp, GeluAttributes());
                 graph.node(id).inputs = {x};
               });
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(Dump(graph.Compact()),
            Dump(ReadGraph("%2 = gelu(%1) approximation=\"none\" f32[T,16]\n"
                           "%3 = silu(%2) f32[T,16]\n"
                           "output y = %3\n")
                     .Compact()));
}

TEST(ForEachMatch, DeadNodesAreNoReaders) {
  Graph graph = ReadGraph(
      "%2 = silu(%1) f32[T,16]\n"
      "%3 = add(%2, %1) f32[T,16]\n"
      "%4 = add(%2, %2) f32[T,16]\n"
      "output y = %3\n");
  ValueId x;
  int visits = 0;
  ForEachMatch(graph, Op(kAddOp, {Once(Op(kSiluOp, {Any(&x)}))}),
               [&](NodeId) { ++visits; });
  EXPECT_EQ(visits, 1);
}

TEST(InsertBefore, FindsTheTypesByTheRule) {
  Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "output y = %2\n");
  const NodeId product = Root(graph);
  const ValueId joined =
      InsertBefore(graph, product,
                   Node(kConcatRowsOp,
                        {graph.FindValue("a"), graph.FindValue("b")}, {}, ""));
  EXPECT_EQ(graph.value(joined).type.ToString(), "f32[32,16]");
  EXPECT_EQ(graph.order().back(), product);
  EXPECT_TRUE(VerifyGraph(graph).ok());
}

TEST(InsertBefore, LeavesWhatTheRuleRefusesToTheVerifier) {
  Graph graph = ReadGraph(
      "%2 = matmul(%1, $a) f32[T,16]\n"
      "output y = %2\n");
  InsertBefore(graph, Root(graph),
               Node(kConcatRowsOp, {graph.FindValue("a"), graph.FindValue("v")},
                    {}, ""));
  EXPECT_NE(VerifyGraph(graph).message().find("concat_rows cannot join"),
            std::string::npos)
      << VerifyGraph(graph);
}

}  // namespace
}  // namespace weft
