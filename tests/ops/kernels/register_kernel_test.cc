#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "graph/text_format.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class NoKernel : public Kernel {
 public:
  int64_t Items(const KernelCall&, int) const override { return 0; }
  void Run(const KernelCall&, int, int64_t, int64_t) const override {}
};

class TestRow : public KernelEntry {
 public:
  explicit TestRow(std::string name, std::string op = "silu",
                   std::string layout = "", std::string summation = "float64",
                   std::string refuses = "")
      : KernelEntry(std::move(name), std::move(op), Isa::kRef,
                    std::move(layout), std::move(summation)),
        refuses_(std::move(refuses)) {}
  std::string Refuses(const NodeView&) const override { return refuses_; }
  std::unique_ptr<Kernel> Create(const NodeView&) const override {
    return std::make_unique<NoKernel>();
  }

 private:
  std::string refuses_;
};

absl::StatusOr<Registration> Add(const std::string& name) {
  return RegisterKernel(std::make_unique<TestRow>(name));
}

Graph OneNode(const std::string& op) {
  absl::StatusOr<Graph> graph = ParseGraph(
      "graph t tokens<=4 rows<=4 context<=4\n%0 = input x  f32[T,8]\n"
      "%1 = " +
      op + "(%0)  f32[T,8]\noutput y = %1\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Chosen(const Graph& graph) {
  const Node& node = graph.node(graph.order().back());
  return ChooseKernel({graph, node, {DetectIsa()}}).entry->name();
}

TEST(RegisterKernel, TheLatestStandsFirst) {
  const Graph graph = OneNode("silu");
  const std::string before = Chosen(graph);
  const size_t rows = AllKernels().size();
  {
    absl::StatusOr<Registration> first = Add("silu_first_ref");
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Chosen(graph), "silu_first_ref");
    absl::StatusOr<Registration> second = Add("silu_second_ref");
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(Chosen(graph), "silu_second_ref");
    ASSERT_NE(FindKernel("silu_second_ref"), nullptr);
    EXPECT_EQ(FindKernel("silu_second_ref")->op(), "silu");
    // In any order of end.
    first->End();
    EXPECT_EQ(FindKernel("silu_first_ref"), nullptr);
    EXPECT_EQ(Chosen(graph), "silu_second_ref");
  }
  EXPECT_EQ(Chosen(graph), before);
  EXPECT_EQ(AllKernels().size(), rows);
}

TEST(RegisterKernel, OneThatRefusesLeavesTheNodeToOthers) {
  const Graph graph = OneNode("silu");
  const std::string before = Chosen(graph);
  const absl::StatusOr<Registration> registration =
      RegisterKernel(std::make_unique<TestRow>("silu_no_ref", "silu", "",
                                               "float64", "not on Mondays"));
  ASSERT_TRUE(registration.ok());
  const Node& node = graph.node(graph.order().back());
  const KernelChoice choice = ChooseKernel({graph, node, {DetectIsa()}});
  EXPECT_EQ(choice.entry->name(), before);
  ASSERT_FALSE(choice.refused.empty());
  EXPECT_EQ(choice.refused[0].second, "not on Mondays");
}

void ExpectRefused(std::unique_ptr<KernelEntry> row, const std::string& why) {
  const size_t before = AllKernels().size();
  const absl::StatusOr<Registration> registration =
      RegisterKernel(std::move(row));
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(registration.status().message(), HasSubstr(why));
  EXPECT_EQ(AllKernels().size(), before);
}

TEST(RegisterKernel, RefusesWhatCannotBe) {
  ExpectRefused(nullptr, "give it a name");
  ExpectRefused(std::make_unique<TestRow>(""), "give it a name");
  ExpectRefused(std::make_unique<TestRow>("silu_ref"),
                "silu_ref: there is one of this name");
  ExpectRefused(std::make_unique<TestRow>("double_it_ref", "double_it"),
                "there is no op 'double_it': register it first");
  ExpectRefused(std::make_unique<TestRow>("slice_fast_ref", "slice"),
                "slice is a view");
  ExpectRefused(
      std::make_unique<TestRow>("matmul_x_ref", "matmul", "panel17", "float64"),
      "there is no weight layout 'panel17'");
  ExpectRefused(std::make_unique<TestRow>("silu_x_ref", "silu", "", ""),
                "name its summation order");
}

absl::StatusOr<std::vector<ValueType>> InferSame(const Graph& graph,
                                                 const Node& node) {
  return std::vector<ValueType>{graph.value(node.inputs[0]).type};
}

void Double(const ReferenceCall& call) {
  const float* x = static_cast<const float*>(call.inputs[0].data);
  float* y = static_cast<float*>(call.outputs[0].data);
  const int64_t n = call.inputs[0].rows * call.inputs[0].columns;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}

TEST(RegisterKernel, ARegisteredOpHasItsReferenceKernel) {
  const OperandSchema operands[] = {RowsOperand("x")};
  OpDef op;
  op.name = "double_it";
  op.operands = operands;
  op.infer = InferSame;
  op.reference = Double;
  const size_t rows = AllKernels().size();
  EXPECT_EQ(FindKernel("double_it_ref"), nullptr);
  {
    const absl::StatusOr<Registration> registration = RegisterOp(&op);
    ASSERT_TRUE(registration.ok());
    EXPECT_EQ(AllKernels().size(), rows + 1);
    const Graph graph = OneNode("double_it");
    ASSERT_TRUE(VerifyGraph(graph).ok());
    EXPECT_EQ(Chosen(graph), "double_it_ref");
    float x[4] = {1, -2, 3, 0.5f}, y[4] = {};
    Operand in = {}, out = {};
    in.data = x;
    out.data = y;
    in.rows = out.rows = 2;
    in.columns = out.columns = 2;
    const Node& node = graph.node(graph.order().back());
    const std::unique_ptr<Kernel> kernel =
        FindKernel("double_it_ref")->Create({graph, node, {}});
    kernel->Run({&in, &out, nullptr, nullptr}, 0, 0, 1);
    EXPECT_THAT(y, ::testing::ElementsAre(2, -4, 6, 1));
    // And it can have a better one.
    const absl::StatusOr<Registration> fast =
        RegisterKernel(std::make_unique<TestRow>("double_it_x", "double_it"));
    ASSERT_TRUE(fast.ok()) << fast.status();
    EXPECT_EQ(Chosen(graph), "double_it_x");
  }
  EXPECT_EQ(FindKernel("double_it_ref"), nullptr);
  EXPECT_EQ(AllKernels().size(), rows);
}

}  // namespace
}  // namespace weft
