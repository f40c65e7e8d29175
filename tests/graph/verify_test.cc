// One test per rule of a legal graph, with its message.
#include "graph/verify.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_rules.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr char kLegal[] = R"(
  $w = weight q4_0[8,64]
  %0 = input x  f32[T,8]
  %1 = state s  f16[S,8]
  %2 = copy(%0)  f32[T,8]
  %3 = write(%1, %2)  f16[S,8]
  %4, %5 = pair(%2)  f32[T,8], f32[T,8]
  output y = %4
  output s = %3
)";

TEST(VerifyTest, ALegalGraphPasses) {
  EXPECT_EQ(VerifyMessage(TestGraph(kLegal)), "");
}

struct Case {
  const char* rule;
  const char* lines;
  const char* message;
};

// Graphs that are legal but for the one rule.
const Case kCases[] = {
    {"DimensionOfZero", "%0 = input x  f32[T,0]\n output y = %0",
     "illegal graph: x: dimension 1 is 0, want 1 to 2^32"},
    {"DimensionBelowZero", "%0 = input x  f32[-3,8]\n output y = %0",
     "x: dimension 0 is -3, want 1 to 2^32"},
    {"DimensionTooLarge", "%0 = input x  f32[4294967297]\n output y = %0",
     "x: dimension 0 is 4294967297, want 1 to 2^32"},
    {"TooManyElements", "%0 = input x  f32[2097152,1048576]\n output y = %0",
     "x: more than 2^40 elements"},
    {"ProductThatWraps",
     "%0 = input x  f32[4294967296,4294967296,4294967296]\n output y = %0",
     "x: more than 2^40 elements"},
    {"RowsOfPartsOfBlocks", "$w = weight q4_0[2,33]\n output y = $w",
     "w: rows of 33 elements, but q4_0 has blocks of 32"},
    {"NameGivenTwice",
     "%0 = input x  f32[T,8]\n %1 = input x  f32[T,8]\n output y = %0",
     "x: two values have this name"},
    {"UnknownOp",
     "%0 = input x  f32[T,8]\n %1 = twist(%0)  f32[T,8]\n output y = %1",
     "twist (node 0): there is no op 'twist'"},
    {"ResultOfAnotherType",
     "%0 = input x  f32[T,8]\n %1 = copy(%0)  f32[T,9] : c\n output y = %1",
     "copy (c): result is f32[T,9], its rule says f32[T,8]"},
    {"TooFewResults",
     "%0 = input x  f32[T,8]\n %1 = pair(%0)  f32[T,8] : c\n output y = %1",
     "pair (c): has 1 results, want 2"},
    {"WriteOfAnOldStateVersion",
     "%0 = input x  f32[T,8]\n %1 = state s  f32[S,8]\n"
     "%2 = write(%1, %0)  f32[S,8]\n %3 = write(%1, %0)  f32[S,8] : again\n"
     "output s = %3",
     "write (again): reads a state version that was written since"},
    {"ReadOfAnOldStateVersion",
     "%0 = input x  f32[T,8]\n %1 = state s  f32[S,8]\n"
     "%2 = write(%1, %0)  f32[S,8]\n %3 = copy(%1)  f32[S,8] : late\n"
     "output s = %2\n output y = %3",
     "copy (late): reads a state version that was written since"},
    {"OutputIsAnOldStateVersion",
     "%0 = input x  f32[T,8]\n %1 = state s  f32[S,8]\n"
     "%2 = write(%1, %0)  f32[S,8]\n output old = %1\n output s = %2",
     "old: output is an old version of its state"},
    {"LastStateVersionIsNoOutput",
     "%0 = input x  f32[T,8]\n %1 = state s  f32[S,8]\n"
     "%2 = write(%1, %0)  f32[S,8]\n output y = %0",
     "outputs: the last version of a state is missing"},
    {"NoOutputs", "%0 = input x  f32[T,8]", "outputs: there are none"},
    {"OutputNamedTwice",
     "%0 = input x  f32[T,8]\n output y = %0\n output y = %0",
     "y: two outputs have this name"},
};

class IllegalGraphTest : public testing::TestWithParam<Case> {};

TEST_P(IllegalGraphTest, IsToldWithItsRule) {
  EXPECT_THAT(VerifyMessage(TestGraph(GetParam().lines)),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(VerifyTest, IllegalGraphTest,
                         testing::ValuesIn(kCases), [](const auto& info) {
                           return std::string(info.param.rule);
                         });

// What text cannot say.

TEST(VerifyTest, BoundsAreAtLeastOne) {
  for (int64_t bad : {int64_t{0}, int64_t{-1}, (int64_t{1} << 32) + 1}) {
    Graph graph = TestGraph(kLegal);
    graph.bounds.rows = bad;
    EXPECT_EQ(VerifyMessage(graph),
              "illegal graph: header: bounds must be from 1 to 2^32");
  }
}

TEST(VerifyTest, ValuesHaveDimensions) {
  Graph graph = TestGraph(kLegal);
  graph.value(graph.FindValue("x")).type.shape = Shape();
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("x: a value needs a dimension"));
}

TEST(VerifyTest, SourcesHaveNames) {
  Graph graph = TestGraph(kLegal);
  graph.value(graph.FindValue("x")).name = "";
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("has no name"));
}

TEST(VerifyTest, WeightsHaveTheBytesThatTheirTypeNeeds) {
  Graph graph = TestGraph(kLegal);
  Value& weight = graph.value(graph.FindValue("w"));
  const std::vector<uint8_t> bytes(8 * 2 * 18 + 1);
  weight.data.bytes = absl::MakeConstSpan(bytes).first(8 * 2 * 18);
  EXPECT_EQ(VerifyMessage(graph), "");
  weight.data.bytes = bytes;
  EXPECT_THAT(VerifyMessage(graph),
              HasSubstr("w: has 289 bytes, its type needs 288"));
}

TEST(VerifyTest, TheOrderNamesEveryNodeOnce) {
  Graph graph = TestGraph(kLegal);
  std::vector<NodeId> order = graph.order();
  order.push_back(order[0]);
  graph.SetOrder(order);
  EXPECT_THAT(VerifyMessage(graph),
              HasSubstr("order: node 0 (copy) twice or erased"));
  order.back() = 99;
  graph.SetOrder(order);
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("order: no node 99"));
  order.back() = -1;
  graph.SetOrder(order);
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("order: no node -1"));
}

TEST(VerifyTest, OperandsAreMadeBeforeTheyAreUsed) {
  Graph graph = TestGraph(kLegal);
  std::vector<NodeId> order = graph.order();
  std::swap(order[0], order[1]);
  graph.SetOrder(order);
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("is used before it is made"));
}

TEST(VerifyTest, OperandsAndResultsExist) {
  for (ValueId bad : {-1, 1000}) {
    Graph graph = TestGraph(kLegal);
    graph.node(0).inputs[0] = bad;
    EXPECT_THAT(VerifyMessage(graph),
                HasSubstr(absl::StrCat("copy (node 0): no value ", bad)));
    graph = TestGraph(kLegal);
    graph.node(0).outputs[0] = bad;
    EXPECT_THAT(VerifyMessage(graph),
                HasSubstr(absl::StrCat("copy (node 0): no value ", bad)));
  }
}

TEST(VerifyTest, AResultHasOneProducer) {
  Graph graph = TestGraph(kLegal);
  Node& pair = graph.node(2);
  pair.outputs[1] = pair.outputs[0];
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("has another producer"));
}

TEST(VerifyTest, AWriteHasAState) {
  Graph graph = TestGraph(kLegal);
  graph.node(1).inputs.clear();
  graph.node(1).outputs.clear();
  EXPECT_THAT(VerifyMessage(graph), HasSubstr("has no state operand"));
}

TEST(VerifyTest, OutputsExist) {
  Graph graph = TestGraph(kLegal);
  for (ValueId bad : {-1, 1000}) {
    graph.SetOutput(0, bad);
    EXPECT_THAT(VerifyMessage(graph),
                HasSubstr("y: output is not made by any node"));
  }
}

}  // namespace
}  // namespace weft
