// Graphs that kernels would trip over, and the rule that refuses each.
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/text_format.h"
#include "ops/op_table.h"

namespace weft {
namespace {

// The standard inputs, some weights and states, then `body`. Values of the body
// count from %8.
absl::Status Check(const std::string& body) {
  absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrCat("graph rules tokens<=8 rows<=8 context<=64\n"
                              "  $table = weight  f32[100,64]\n"
                              "  $square = weight  f32[64,64]\n"
                              "  $norm = weight  f32[64]\n"
                              "  $numbers = weight  i32[8]\n"
                              "  $cube = weight  f32[8,4,64]\n"
                              "  %0 = input ids  i32[T]\n"
                              "  %1 = input positions  i32[T]\n"
                              "  %2 = input sequence  i32[T]\n"
                              "  %3 = input output_rows  i32[R]\n"
                              "  %4 = state k  f16[S,2,32]{keys}\n"
                              "  %5 = state v  f16[S,2,32]{values}\n"
                              "  %6 = embed(%0, $table)  f32[T,64]\n"
                              "  %7 = take_rows(%6, %3)  f32[R,64]\n",
                              body));
  return graph.ok() ? VerifyGraph(*graph) : graph.status();
}

void ExpectLegal(const std::string& body) {
  EXPECT_TRUE(Check(body).ok()) << Check(body) << body;
}

void ExpectIllegal(const std::string& body, const std::string& why) {
  const absl::Status s = Check(body);
  EXPECT_FALSE(s.ok()) << body;
  EXPECT_NE(s.message().find(why), std::string::npos) << s;
}

TEST(Rules, IndicesAreInputs) {
  ExpectLegal(
      "  %8 = rope(%6, %1) base=10000.0 head_dim=32 rope_dims=32 "
      "scale=1.0 style=\"halves\"  f32[T,64]\n  output x = %8\n");
  ExpectIllegal("  %8 = embed($numbers, $table)  f32[8,64]\n  output x = %8\n",
                "want an input");
  ExpectIllegal("  %8 = take_rows(%6, $numbers)  f32[8,64]\n  output x = %8\n",
                "want an input");
}

TEST(Rules, OneIndexForEachRow) {
  ExpectIllegal(
      "  %8 = rope(%7, %1) base=10000.0 head_dim=32 rope_dims=32 "
      "scale=1.0 style=\"halves\"  f32[R,64]\n  output x = %8\n",
      "one number for each row");
  ExpectIllegal(
      "  %8 = kv_write(%4, %7, %1, %2)  f16[S,2,32]{keys}\n"
      "  output x = %8\n",
      "one number for each row");
  ExpectIllegal(
      "  %8 = attention_scores(%7, %4, %1, %2) heads=2 scale=1.0  f32[R,2,S]\n"
      "  output x = %8\n",
      "one number for each row");
}

TEST(Rules, NormsTakeMatrices) {
  ExpectLegal(
      "  %8 = rms_norm(%6, $norm) eps=1e-05  f32[T,64]\n"
      "  output x = %8\n");
  ExpectIllegal(
      "  %8 = rms_norm($cube, $norm) eps=1e-05  f32[8,4,64]\n"
      "  output x = %8\n",
      "wants a matrix");
}

TEST(Rules, RepeatedRowsGoWithMatrices) {
  ExpectLegal("  %8 = add(%6, $norm)  f32[T,64]\n  output x = %8\n");
  ExpectIllegal("  %8 = add($cube, $norm)  f32[8,4,64]\n  output x = %8\n",
                "cannot join");
}

TEST(Rules, PlainProductsHaveNoFusedParts) {
  ExpectLegal("  %8 = matmul(%6, $square)  f32[T,64]\n  output x = %8\n");
  for (const char* attribute :
       {"eps=1e-05", "bias=1", "quantize=1", "epilogue=\"residual\"",
        "epilogue=\"silu_gate\""}) {
    ExpectIllegal(absl::StrCat("  %8 = matmul(%6, $square) ", attribute,
                               "  f32[T,64]\n  output x = %8\n"),
                  "no such attribute: the op has none");
  }
}

TEST(Rules, SlicesAreNotReadAsWholeValues) {
  const std::string slice = "  %8 = slice(%6) begin=0 size=32  f32[T,32]\n";
  ExpectLegal(slice + "  %9 = silu(%8)  f32[T,32]\n  output x = %9\n");
  ExpectIllegal(slice + "  %9 = softmax(%8)  f32[T,32]\n  output x = %9\n",
                "not a slice");
  ExpectIllegal(
      "  %8 = slice($table) begin=0 size=32  f32[100,32]\n"
      "  %9 = embed(%0, %8)  f32[T,32]\n  output x = %9\n",
      "not a slice");
}

TEST(Rules, TablesAndWeightsHaveNumbersOfRows) {
  ExpectIllegal("  %8 = matmul(%6, %6)  f32[T,T]\n  output x = %8\n",
                "wants a weight");
  ExpectIllegal("  %8 = embed(%0, %6)  f32[T,64]\n  output x = %8\n",
                "wants a table");
  const absl::StatusOr<Graph> graph = ParseGraph(
      "graph g tokens<=8 rows<=8 context<=64\n"
      "  $w = weight  f32[T,64]\n  %0 = silu($w)  f32[T,64]\n"
      "  output x = %0\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(VerifyGraph(*graph).ok());
}

TEST(Rules, LayoutsOfSourcesExist) {
  for (const char* source :
       {"$w = weight  f32[64]{keys}", "$w = weight  f32[64]{panel16}",
        "$w = weight  f32[64,64]{nowhere}", "%0 = input x  f32[64]{panel16}",
        "%0 = state x  f32[S,2,32]", "%0 = state x  i32[S,2,32]{keys}",
        "%0 = state x  f32[64,2,32]{keys}", "%0 = state x  f32[S]{keys}"}) {
    const absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(
        "graph g tokens<=8 rows<=8 context<=64\n"
        "  $a = weight  f32[8,64]\n  ",
        source, "\n  %1 = silu($a)  f32[8,64]\n  output x = %1\n"));
    ASSERT_TRUE(graph.ok()) << graph.status() << source;
    EXPECT_FALSE(VerifyGraph(*graph).ok()) << source;
  }
}

TEST(Cost, OfTheLargestLegalGraphFits) {
  const absl::StatusOr<Graph> graph = ParseGraph(
      "graph g tokens<=4294967296 rows<=1 context<=4294967296\n"
      "  $table = weight  f32[4294967296,256]\n"
      "  %0 = input ids  i32[T]\n"
      "  %1 = input positions  i32[T]\n"
      "  %2 = input sequence  i32[T]\n"
      "  %3 = state k  f16[S,2,128]{keys}\n"
      "  %4 = state v  f16[S,2,128]{values}\n"
      "  %5 = embed(%0, $table)  f32[T,256]\n"
      "  %6 = attention(%5, %3, %4, %1, %2) heads=2 scale=1.0  f32[T,256]\n"
      "  output x = %6\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  const Cost embed = NodeCost(*graph, graph->node(0), graph->bounds);
  // The whole table and as much again written.
  EXPECT_EQ(embed.bytes, (int64_t{1} << 43) + (int64_t{1} << 34));
  const Cost attention = NodeCost(*graph, graph->node(1), graph->bounds);
  EXPECT_EQ(attention.operations, std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace weft
