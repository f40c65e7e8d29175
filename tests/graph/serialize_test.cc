#include "graph/serialize.h"

#include <gtest/gtest.h>

#include "graph/text_format.h"
#include "tests/graph/test_rules.h"

namespace weft {
namespace {

constexpr char kText[] = R"(graph small tokens<=8 rows<=8 context<=64
  $table = weight  q4_0[100,64]{panel16}
  $norm = weight  f32[64]
  %0 = input ids  i32[T]
  %1 = input positions  i32[T]
  %2 = input sequence  i32[T]
  %3 = input output_rows  i32[R]
  %4 = state blk.0.k  f16[S,2,32]{keys}
  %5 = embed(%0, $table)  f32[T,64]@0  : token_embd
  %6 = rms_norm(%5, $norm) eps=1e-05 kernel="rms_norm_ref"  f32[T,64]@2048 scratch@128
  %7 = kv_write(%4, %6, %1, %2)  f16[S,2,32]{keys}
  %8 = slice(%6) begin=0 size=32  f32[T,32]@2048
  output logits = %8
  output keys = %7
)";

Graph Small() {
  absl::StatusOr<Graph> graph = Parse(kText, FindTestOp);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(Serialize, RoundTripKeepsTheText) {
  const Graph graph = Small();
  absl::StatusOr<Graph> read = FromProto(ToProto(graph), FindTestOp);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Dump(*read), Dump(graph));
}

TEST(Serialize, RoundTripKeepsPlacesAndNumbers) {
  Graph graph = Small();
  graph.arena = {4096, 4000, 5000};
  Node extreme = MakeNode("op",
                          {{"tiny", 5e-324},
                           {"large", std::numeric_limits<int64_t>::min()}},
                          FindTestOp)
                     .value();
  graph.node(1).op = extreme.op;
  graph.node(1).unknown_op = extreme.unknown_op;
  graph.node(1).attributes = extreme.attributes;
  graph.node(1).name = std::string("not \xff UTF-8\0", 12);
  absl::StatusOr<Graph> read = FromProto(ToProto(graph), FindTestOp);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->arena.bytes, 4096);
  EXPECT_EQ(read->arena.lower_bound, 4000);
  EXPECT_EQ(read->arena.sum_of_intermediates, 5000);
  EXPECT_EQ(read->node(1).attributes, graph.node(1).attributes);
  EXPECT_EQ(read->node(1).name, graph.node(1).name);
  EXPECT_EQ(read->node(1).scratch_offset, graph.node(1).scratch_offset);
}

TEST(Serialize, SameGraphGivesSameBytes) {
  EXPECT_EQ(ToProto(Small()).SerializeAsString(),
            ToProto(Small()).SerializeAsString());
}

TEST(Serialize, ErasedNodesAreLeftOut) {
  Graph graph = Small();
  const NodeId extra =
      graph.AddNode(Node(kCopy, {graph.node(1).outputs[0]}, {}, "extra"),
                    {graph.value(graph.node(1).outputs[0]).type});
  graph.Erase(extra);
  EXPECT_EQ(ToProto(graph).SerializeAsString(),
            ToProto(Small()).SerializeAsString());
}

// Each edit makes a message that must be refused.
void ExpectRefused(void (*edit)(GraphProto*), const std::string& why) {
  GraphProto proto = ToProto(Small());
  edit(&proto);
  const absl::Status status = FromProto(proto, FindTestOp).status();
  EXPECT_FALSE(status.ok()) << why;
  EXPECT_NE(status.message().find(why), std::string::npos) << status;
}

TEST(Serialize, RefusesWhatCannotBe) {
  ExpectRefused([](GraphProto* g) { g->mutable_nodes(0)->set_inputs(0, -1); },
                "operand -1");
  // The node's own result, and one far out.
  ExpectRefused([](GraphProto* g) { g->mutable_nodes(0)->set_inputs(0, 7); },
                "operand 7");
  ExpectRefused(
      [](GraphProto* g) { g->mutable_nodes(0)->set_inputs(0, 1 << 30); },
      "is not made before");
  ExpectRefused(
      [](GraphProto* g) {
        g->mutable_sources(0)->mutable_type()->set_dtype("q9");
      },
      "unknown type 'q9'");
  ExpectRefused(
      [](GraphProto* g) {
        for (int i = 0; i < 3; ++i) {
          g->mutable_sources(0)->mutable_type()->add_dims()->set_value(1);
        }
      },
      "5 dimensions");
  ExpectRefused(
      [](GraphProto* g) {
        g->mutable_sources(0)->mutable_type()->mutable_dims(0)->set_symbol(
            static_cast<DimProto::Symbol>(9));
      },
      "unknown dimension 9");
  ExpectRefused(
      [](GraphProto* g) {
        g->mutable_sources(0)->mutable_type()->mutable_dims(0)->set_symbol(
            DimProto::TOKENS);
      },
      "symbol at once");
  ExpectRefused(
      [](GraphProto* g) {
        g->mutable_sources(0)->set_kind(static_cast<SourceProto::Kind>(3));
      },
      "unknown kind 3");
  ExpectRefused(
      [](GraphProto* g) {
        *g->mutable_nodes(1)->add_attributes() = g->nodes(1).attributes(0);
      },
      "twice");
  ExpectRefused(
      [](GraphProto* g) {
        g->mutable_nodes(1)->mutable_attributes(0)->clear_value();
      },
      "has no value");
  ExpectRefused(
      [](GraphProto* g) {
        for (int i = 0; i < 20; ++i) {
          *g->mutable_nodes(1)->add_results() = g->nodes(1).results(0);
        }
      },
      "too many results");
  ExpectRefused([](GraphProto* g) { g->mutable_outputs(0)->set_value(99); },
                "no value 99");
}

}  // namespace
}  // namespace weft
