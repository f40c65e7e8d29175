#include "passes/lifetimes.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/text_format.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "passes/check_plan.h"
#include "tests/passes/random_graph.h"

namespace weft {
namespace {

// Sources that the graphs below share, then what a test adds.
Graph ReadGraph(const std::string& nodes) {
  absl::StatusOr<Graph> graph = ParseGraph(R"(
graph t tokens<=4 rows<=2 context<=64
  $table = weight  f32[10,64]
  $square = weight  f32[64,64]
  $narrow = weight  f32[16,64]
  $wide = weight  f32[64,16]
  $norm = weight  f32[64]
  %ids = input ids  i32[T]
  %positions = input positions  i32[T]
  %sequence = input sequence  i32[T]
  %rows = input output_rows  i32[R]
  %k = state k  f16[S,2,32]{keys}
  %0 = embed(%ids, $table)  f32[T,64]
)" + nodes);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::Status legal = VerifyGraph(*graph);
  EXPECT_TRUE(legal.ok()) << legal;
  return *std::move(graph);
}

// The record of the node at this place of the order; null when it has none.
const Lifetime* RecordAt(const Graph& graph, const Lifetimes& lifetimes,
                         int place) {
  const ValueId value = graph.node(graph.order()[place]).outputs[0];
  for (size_t i = 0; i < lifetimes.records.size(); ++i) {
    if (lifetimes.values[i] == value) return &lifetimes.records[i];
  }
  return nullptr;
}

int64_t IndexOf(const Lifetimes& lifetimes, const Lifetime* record) {
  return record - lifetimes.records.data();
}

TEST(Lifetimes, LastFromTheStepThatWritesToTheLastThatReads) {
  const Graph graph = ReadGraph(R"(
  %1 = gelu(%0) approximation="none"  f32[T,64]
  %2 = mul(%1, %0)  f32[T,64]
  %3 = mul(%2, %2)  f32[T,64]
  output y = %3
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  ASSERT_EQ(lifetimes.records.size(), 3u);  // the output has none
  const Lifetime* embedded = RecordAt(graph, lifetimes, 0);
  EXPECT_EQ(embedded->first, 0);
  EXPECT_EQ(embedded->last, 2);
  EXPECT_EQ(embedded->bytes, 4 * 64 * 4);  // the bound of T, not a step's
  EXPECT_EQ(embedded->share, -1);
  const Lifetime* product = RecordAt(graph, lifetimes, 2);
  EXPECT_EQ(product->first, 2);
  EXPECT_EQ(product->last, 3);
}

TEST(Lifetimes, WhatNobodyReadsLivesForOneStep) {
  const Graph graph = ReadGraph(R"(
  %1 = softmax(%0)  f32[T,64]
  %2 = matmul(%0, $square)  f32[T,64]
  output y = %2
)");
  const Lifetime* unread = RecordAt(graph, LifetimesOf(graph), 1);
  EXPECT_EQ(unread->first, 1);
  EXPECT_EQ(unread->last, 1);
}

TEST(Lifetimes, SlicesExtendTheLifeOfWhatTheyLookInto) {
  const Graph graph = ReadGraph(R"(
  %1 = slice(%0) begin=16 size=32  f32[T,32]
  %2 = slice(%1) begin=8 size=16  f32[T,16]
  %3 = silu(%0)  f32[T,64]
  %4 = matmul(%3, $square)  f32[T,64]
  %5 = matmul(%2, $wide)  f32[T,64]
  %6 = add(%5, %4)  f32[T,64]
  output y = %6
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  const Lifetime* parent = RecordAt(graph, lifetimes, 0);
  EXPECT_EQ(parent->last, 5);
  EXPECT_EQ(RecordAt(graph, lifetimes, 1), nullptr);
  EXPECT_EQ(RecordAt(graph, lifetimes, 2), nullptr);
  // silu reads %0, but not for the last time.
  EXPECT_EQ(RecordAt(graph, lifetimes, 3)->share, -1);

  const ValueId inner = graph.node(graph.order()[2]).outputs[0];
  const ViewOf view = RootOf(graph, inner);
  EXPECT_EQ(view.root, graph.node(graph.order()[0]).outputs[0]);
  EXPECT_EQ(view.byte_offset, (16 + 8) * 4);
  EXPECT_TRUE(InArena(graph, inner));
}

TEST(Lifetimes, ElementwiseOpsWorkInPlaceWhenTheyReadLast) {
  const Graph graph = ReadGraph(R"(
  %1 = silu(%0)  f32[T,64]
  %2 = rms_norm(%1, $norm) eps=1e-05  f32[T,64]
  %3 = rope(%2, %positions) base=10000.0 head_dim=32 rope_dims=32 scale=1.0 style="halves"  f32[T,64]
  %4 = softmax(%3)  f32[T,64]
  %5 = mul(%4, $norm)  f32[T,64]
  %6 = matmul(%5, $square)  f32[T,64]
  %7 = matmul(%6, $square)  f32[T,64]
  output y = %7
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  for (int place = 1; place <= 5; ++place) {
    EXPECT_EQ(RecordAt(graph, lifetimes, place)->share, place - 1) << place;
  }
  // A product reads all of its operand for each result.
  EXPECT_EQ(RecordAt(graph, lifetimes, 6)->share, -1);
}

TEST(Lifetimes, SecondOperandIsNotWrittenOver) {
  const Graph graph = ReadGraph(R"(
  %1 = gelu(%0) approximation="none"  f32[T,64]
  %2 = mul(%0, %1)  f32[T,64]
  %3 = mul(%0, %2)  f32[T,64]
  output y = %0
  output z = %3
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  EXPECT_EQ(RecordAt(graph, lifetimes, 0), nullptr);
  EXPECT_EQ(RecordAt(graph, lifetimes, 1)->share, -1) << "of an output";
  EXPECT_EQ(RecordAt(graph, lifetimes, 2)->share, -1) << "first operand stays";
}

TEST(Lifetimes, NoSharingOfWhatIsReadTwice) {
  const Graph graph = ReadGraph(R"(
  %1 = add(%0, %0)  f32[T,64]
  %2 = matmul(%1, $square)  f32[T,64]
  output y = %2
)");
  EXPECT_EQ(RecordAt(graph, LifetimesOf(graph), 1)->share, -1);
}

TEST(Lifetimes, NoSharingThroughASlice) {
  // The slice has the memory of %0, but another distance between rows.
  const Graph graph = ReadGraph(R"(
  %1 = slice(%0) begin=16 size=16  f32[T,16]
  %2 = silu(%1)  f32[T,16]
  %3 = matmul(%2, $wide)  f32[T,64]
  output y = %3
)");
  EXPECT_EQ(RecordAt(graph, LifetimesOf(graph), 2)->share, -1);
}

TEST(Lifetimes, NoSharingOfOtherTypesOrSizes) {
  const Graph graph = ReadGraph(R"(
  %1 = quantize_rows(%0)  q8r[T,64]
  %2 = softmax(%0)  f32[T,64]
  %3 = take_rows(%2, %rows)  f32[R,64]
  %4 = silu(%3)  f32[R,64]
  %5 = matmul(%4, $square)  f32[R,64]
  output y = %5
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  EXPECT_EQ(RecordAt(graph, lifetimes, 1)->share, -1);
  EXPECT_EQ(RecordAt(graph, lifetimes, 1)->bytes, 4 * 64 / 32 * 48);
  EXPECT_EQ(RecordAt(graph, lifetimes, 3)->share, -1);
  EXPECT_EQ(RecordAt(graph, lifetimes, 3)->bytes, 2 * 64 * 4);
  EXPECT_EQ(RecordAt(graph, lifetimes, 4)->share, 3);
}

TEST(Lifetimes, ProductsTakeTheMemoryOfTheirResidual) {
  const Graph graph = ReadGraph(R"(
  %1 = matmul(%0, $narrow)  f32[T,16]
  %2 = fused_matmul(%1, $wide, %0) epilogue="residual"  f32[T,64]
  %3 = fused_matmul(%2, $square, $norm, %2) eps=1e-05 epilogue="residual"  f32[T,64]
  %4 = slice(%3) begin=0 size=16  f32[T,16]
  %5 = fused_matmul(%4, $wide, %3) epilogue="residual"  f32[T,64]
  %6 = matmul(%5, $square)  f32[T,64]
  output y = %6
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  EXPECT_EQ(RecordAt(graph, lifetimes, 2)->share,
            IndexOf(lifetimes, RecordAt(graph, lifetimes, 0)));
  EXPECT_EQ(RecordAt(graph, lifetimes, 3)->share, -1) << "also the operand";
  EXPECT_EQ(RecordAt(graph, lifetimes, 5)->share, -1)
      << "also the operand, through a slice";
}

TEST(Lifetimes, StatesAndOutputsAreNotInTheArena) {
  const Graph graph = ReadGraph(R"(
  %1 = kv_write(%k, %0, %positions, %sequence)  f16[S,2,32]{keys}
  %2 = matmul(%0, $square)  f32[T,64]
  %3 = silu(%2)  f32[T,64]
  output k = %1
  output y = %2
  output z = %3
)");
  const Lifetimes lifetimes = LifetimesOf(graph);
  EXPECT_EQ(lifetimes.records.size(), 1u);
  for (int place : {1, 2, 3}) {
    EXPECT_FALSE(InArena(graph, graph.node(graph.order()[place]).outputs[0]));
  }
  EXPECT_FALSE(InArena(graph, graph.FindValue("k")));
  EXPECT_FALSE(InArena(graph, graph.FindValue("norm")));
  EXPECT_FALSE(InArena(graph, graph.FindValue("ids")));
}

TEST(Lifetimes, ScratchLivesInItsStepOnly) {
  Graph graph = ReadGraph(R"(
  %1 = fused_matmul(%0, $square, $norm) eps=1e-05  f32[T,64]
  %2 = matmul(%1, $square)  f32[T,64]
  output y = %2
)");
  EXPECT_EQ(LifetimesOf(graph).records.size(), 2u) << "no kernels, no scratch";
  Node& node = graph.node(graph.order()[1]);
  const KernelEntry* row = ChooseKernel({graph, node, {Isa::kAvx2}}).entry;
  if (row->isa() != Isa::kAvx2) GTEST_SKIP() << "reference kernels only";
  node.kernel = row->name();
  const Lifetimes lifetimes = LifetimesOf(graph);
  ASSERT_EQ(lifetimes.records.size(), 3u);
  EXPECT_EQ(lifetimes.nodes[2], graph.order()[1]);
  EXPECT_EQ(lifetimes.values[2], kNone);
  EXPECT_EQ(lifetimes.records[2].first, 1);
  EXPECT_EQ(lifetimes.records[2].last, 1);
  EXPECT_EQ(lifetimes.records[2].bytes, 4 * 64 * 4);
  EXPECT_EQ(lifetimes.records[2].share, -1);
}

// What holds for every graph, seen from the values instead of the order.
TEST(Lifetimes, OfRandomGraphsCoverEveryRead) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Graph graph = MakeRandomModel(seed, true).graph;
    const Lifetimes lifetimes = LifetimesOf(graph);
    ASSERT_TRUE(CheckLifetimes(lifetimes.records).ok());
    std::vector<int> record_of(graph.value_count(), -1);
    for (size_t i = 0; i < lifetimes.records.size(); ++i) {
      record_of[lifetimes.values[i]] = static_cast<int>(i);
    }
    for (size_t step = 0; step < graph.order().size(); ++step) {
      const Node& node = graph.node(graph.order()[step]);
      for (ValueId input : node.inputs) {
        if (!InArena(graph, input)) continue;
        const int record = record_of[RootOf(graph, input).root];
        ASSERT_GE(record, 0) << "seed " << seed;
        EXPECT_GE(lifetimes.records[record].last, static_cast<int>(step));
      }
      for (ValueId output : node.outputs) {
        const bool own = InArena(graph, output) && !OpOf(node).view;
        EXPECT_EQ(record_of[output] >= 0, own) << "seed " << seed;
        if (!own) continue;
        const Lifetime& life = lifetimes.records[record_of[output]];
        EXPECT_EQ(life.first, static_cast<int>(step));
        EXPECT_EQ(life.bytes,
                  StorageBytes(graph.value(output).type, graph.bounds));
        if (life.share < 0) continue;
        // Shared with an operand that is read here once and never again.
        const ValueId shared = lifetimes.values[life.share];
        EXPECT_EQ(lifetimes.records[life.share].last, static_cast<int>(step));
        int reads = 0;
        for (ValueId input : node.inputs) {
          reads += RootOf(graph, input).root == shared;
        }
        EXPECT_EQ(reads, 1) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace weft
