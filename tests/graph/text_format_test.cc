#include "graph/text_format.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_rules.h"

namespace weft {
namespace {

using testing::HasSubstr;

void ExpectRoundTrip(const std::string& text) {
  const absl::StatusOr<Graph> graph = Parse(text, FindTestOp);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Dump(*graph), text);
}

TEST(TextFormatTest, EveryPartOfTheTextRoundTrips) {
  ExpectRoundTrip(R"(graph llama tokens<=512 rows<=1 context<=4096
  $blk.0.attn_q = weight  q4_0[64,64]{panel16}
  $"odd name" = weight  f32[64]
  %0 = input ids  i32[T]
  %1 = input output_rows  i32[R]
  %2 = state blk.0.keys  f16[S,4,32]{keys}
  %3 = op(%0, $"odd name") eps=1e-05 heads=8 style="halves"  f32[T,64]@0  : blk.0.norm
  %4, %5 = two(%3)  q8r[T,64]@64, f32[T,1,2,3]  scratch@4096
  %6 = none()  f32[R,8]  : "a name, quoted"
  output logits = %6
  output "the state" = %2
)");
}

TEST(TextFormatTest, ThePlannedArenaRoundTrips) {
  ExpectRoundTrip(
      "graph g tokens<=1 rows<=1 context<=1 arena=4096 lower_bound=4000 "
      "sum=123456\n");
}

TEST(TextFormatTest, NumbersFollowTheOrderOfAppearance) {
  const absl::StatusOr<Graph> graph = Parse(
      "graph g tokens<=1 rows<=1 context<=1\n"
      "%90 = input x f32[T,8]\n"
      "%7 = copy(%90) f32[T,8]\n"
      "output y = %7\n",
      FindTestOp);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Dump(*graph),
            "graph g tokens<=1 rows<=1 context<=1\n"
            "  %0 = input x  f32[T,8]\n"
            "  %1 = copy(%0)  f32[T,8]\n"
            "  output y = %1\n");
}

TEST(TextFormatTest, CommentsSpacesAndEmptyLinesMeanNothing) {
  const absl::StatusOr<Graph> graph = Parse(
      "# a comment\n\n"
      "graph g tokens<=1 rows<=1 context<=1   # the header\r\n"
      "\t%0 = input x f32[ T , 8 ] # an input\n"
      "   output  y  =  %0",
      FindTestOp);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Dump(*graph),
            "graph g tokens<=1 rows<=1 context<=1\n"
            "  %0 = input x  f32[T,8]\n"
            "  output y = %0\n");
}

TEST(TextFormatTest, AttributesKeepTheirKindAndEveryBit) {
  for (const AttributeValue& value : std::vector<AttributeValue>{
           int64_t{0}, int64_t{-5}, INT64_MAX, INT64_MIN, 1.0, 0.1, 1e-5, -0.0,
           1.0 / 3, 1e300, 5e-324, std::string(""), std::string("5"),
           std::string("a \"b\" \\ \n # c"), std::string("\xff\x01")}) {
    Graph graph = TestGraph("%0 = input x  f32[T,8]\n");
    const ValueId x = graph.FindValue("x");
    Node node = MakeNode("op", {{"a", value}}, FindTestOp).value();
    node.inputs = {x};
    const Attributes attributes = node.attributes;
    graph.AddNode(node, {graph.value(x).type});
    const std::string text = Dump(graph);
    const absl::StatusOr<Graph> again = Parse(text, FindTestOp);
    ASSERT_TRUE(again.ok()) << text << again.status();
    EXPECT_EQ(again->node(0).attributes, attributes) << text;
  }
}

TEST(TextFormatTest, RandomGraphsRoundTrip) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t n) {
    return static_cast<int32_t>(random() % n);
  };
  const Dim dims[] = {Dim::Tokens(), Dim::Rows(), Dim::Context(),
                      Dim::Number(1), Dim::Number(4096)};
  const char* names[] = {"", "plain", "with space", "dash-1.2/x", "\"", "a#b"};
  const auto type = [&] {
    ValueType t;
    t.dtype = AllDTypes()[below(AllDTypes().size())].type;
    for (int i = 0, n = 1 + below(4); i < n; ++i) {
      t.shape.Append(dims[below(5)]);
    }
    if (below(4) == 0) t.layout = "panel16";
    return t;
  };
  for (int trial = 0; trial < 300; ++trial) {
    Graph graph;
    graph.name = names[1 + below(5)];
    graph.bounds = {1 + below(9), 1 + below(9), 1 + below(9)};
    std::vector<ValueId> values;
    for (int i = 0, n = 1 + below(4); i < n; ++i) {
      const std::string name = absl::StrCat(names[below(6)], i);
      values.push_back(below(2) == 0   ? graph.AddWeight(name, type(), {})
                       : below(2) == 0 ? graph.AddInput(name, type())
                                       : graph.AddState(name, type()));
    }
    for (int i = 0, n = below(10); i < n; ++i) {
      std::vector<ValueId> inputs;
      for (int k = below(4); k > 0; --k) {
        inputs.push_back(values[below(values.size())]);
      }
      std::vector<std::pair<std::string, AttributeValue>> attributes;
      if (below(2) == 0) {
        attributes.emplace_back("i", static_cast<int64_t>(random()));
      }
      if (below(2) == 0)
        attributes.emplace_back("d", std::ldexp(random(), -20));
      if (below(2) == 0) {
        attributes.emplace_back("s", std::string(names[below(6)]));
      }
      std::vector<ValueType> types(1 + below(3));
      for (ValueType& t : types) t = type();
      Node node = MakeNode("op", attributes, FindTestOp).value();
      node.inputs = inputs;
      node.name = names[below(6)];
      const NodeId id = graph.AddNode(std::move(node), types);
      if (below(2) == 0) graph.node(id).scratch_offset = below(999);
      for (ValueId output : graph.node(id).outputs) {
        if (below(2) == 0) graph.value(output).offset = below(999);
        values.push_back(output);
      }
    }
    graph.AddOutput("out", values.back());
    const std::string text = Dump(graph);
    const absl::StatusOr<Graph> again = Parse(text, FindTestOp);
    ASSERT_TRUE(again.ok()) << text << again.status();
    EXPECT_EQ(Dump(*again), text);
  }
}

struct BadLine {
  const char* line;
  const char* message;
};

TEST(TextFormatTest, ErrorsNameTheLineAndWhatIsWanted) {
  const BadLine kBad[] = {
      {"output y = %9", "no value %9 so far"},
      {"output y", "want 'output NAME = %N'"},
      {"nonsense", "want '%N = ...', '$NAME = weight ...' or 'output ...'"},
      {"%0 = input x f32[T,8]", "%0 is made twice"},
      {"%1, %1 = two(%0) f32[T], f32[T]", "%1 is made twice"},
      {"%1 = copy(%2) f32[T]", "no value %2 so far"},
      {"%1 = copy(%0", "want ')' after the operands"},
      {"%1 = copy(0) f32[T]", "want an operand"},
      {"%1 =", "want '= OP'"},
      {"%1 = guess x f32[T]", "want 'guess(...)' or a source"},
      {"%1 = weight f32[8]", "weights, and only weights, are written $NAME"},
      {"$w = input w f32[8]", "weights, and only weights, are written $NAME"},
      {"$w = copy(%0) f32[8]", "results of nodes are written %N"},
      {"%1 = input x f33[T]", "no element type 'f33'"},
      {"%1 = input x f32", "want '[' after the element type"},
      {"%1 = input x f32[Q]", "want T, R, S or a number as dimension"},
      {"%1 = input x f32[]", "want T, R, S or a number as dimension"},
      {"%1 = input x f32[1,2,3,4,5]", "more than four dimensions"},
      {"%1 = input x f32[99999999999999999999]",
       "want T, R, S or a number as dimension"},
      {"%1 = input x f32[T", "want ']' after the dimensions"},
      {"%1 = input x f32[T]{", "want '{LAYOUT}'"},
      {"%1 = input x f32[T]@-1", "want an offset after @"},
      {"%1 = input x f32[T] more", "text after the type"},
      {"%1 = copy(%0) a=b f32[T]",
       "attribute a is neither a number nor a quoted string"},
      {"%1 = copy(%0) a=\"b f32[T]", "string without end"},
      {"%1, %2 = copy(%0) f32[T]", "2 results but 1 types"},
      {"%1 = copy(%0) f32[T] scratch@x", "want an offset after scratch@"},
      {"%1 = copy(%0) f32[T] : ", "want a name"},
      {"%1 = copy(%0) f32[T] ?", "cannot read '?'"},
  };
  for (const BadLine& bad : kBad) {
    const absl::StatusOr<Graph> graph =
        Parse(absl::StrCat("graph g tokens<=1 rows<=1 context<=1\n"
                           "%0 = input first f32[T]\n",
                           bad.line, "\n"),
              FindTestOp);
    ASSERT_FALSE(graph.ok()) << bad.line;
    EXPECT_THAT(graph.status().message(),
                HasSubstr(absl::StrCat("cannot read graph text: line 3: ",
                                       bad.message)))
        << bad.line;
  }
}

TEST(TextFormatTest, TheHeaderIsWanted) {
  EXPECT_THAT(Parse("", FindTestOp).status().message(),
              HasSubstr("line 1: no 'graph'"));
  EXPECT_THAT(Parse("# only a comment\n", FindTestOp).status().message(),
              HasSubstr("no 'graph' header"));
  for (const char* header :
       {"%0 = input x f32[T]", "graph", "graph g tokens<=x rows<=1 context<=1",
        "graph g tokens<=1 rows<=1"}) {
    EXPECT_THAT(Parse(header, FindTestOp).status().message(),
                HasSubstr("line 1: want 'graph NAME tokens<=N"))
        << header;
  }
}

// Any text gives a graph or an error; under a sanitizer this finds reads beyond
// a line's end.
TEST(TextFormatTest, DamagedTextIsReadOrRefused) {
  const std::string good = Dump(TestGraph(R"(
  $w = weight  q4_0[64,64]{panel16}
  %0 = input x  f32[T,64]
  %1 = op(%0, $w) eps=1e-05 s="a \n"  f32[T,64]@64  scratch@0  : name
  output y = %1)"));
  std::mt19937 random(2);
  int read = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string text = good;
    for (int i = 0, n = 1 + random() % 3; i < n; ++i) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        case 2:
          text.insert(at, good.substr(random() % good.size(), 4));
          break;
      }
    }
    if (text.empty()) continue;
    const absl::StatusOr<Graph> graph = Parse(text, FindTestOp);
    if (!graph.ok()) continue;
    ++read;
    const std::string again = Dump(*graph);
    EXPECT_EQ(Dump(Parse(again, FindTestOp).value()), again);
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace weft
