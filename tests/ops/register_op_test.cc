#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/text_format.h"
#include "ops/op_table.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<ValueType>> InferSame(const Graph& graph,
                                                 const Node& node) {
  if (node.inputs.size() != 1) {
    return absl::InvalidArgumentError("double_it wants one operand");
  }
  return std::vector<ValueType>{graph.value(node.inputs[0]).type};
}

void RunNothing(const ReferenceCall&) {}

constexpr OperandSchema kOperands[] = {RowsOperand("x")};

OpDef GoodOp() {
  OpDef op;
  op.name = "double_it";
  op.operands = kOperands;
  op.infer = InferSame;
  op.reference = RunNothing;
  return op;
}

constexpr char kText[] =
    "graph t tokens<=4 rows<=4 context<=4\n"
    "%0 = input x  f32[T,8]\n"
    "%1 = double_it(%0)  f32[T,8]\n"
    "output y = %1\n";

TEST(RegisterOp, IsInTheTableAsLongAsTheRegistration) {
  const OpDef op = GoodOp();
  absl::StatusOr<Graph> unknown = ParseGraph(kText);
  ASSERT_TRUE(unknown.ok()) << unknown.status();
  absl::StatusOr<Graph> graph = absl::UnknownError("not read");
  const size_t before = AllOps().size();
  const int64_t version = OpTableVersion();
  EXPECT_THAT(VerifyGraph(*unknown).message(), HasSubstr("no op 'double_it'"));
  {
    absl::StatusOr<Registration> registration = RegisterOp(&op);
    ASSERT_TRUE(registration.ok()) << registration.status();
    EXPECT_EQ(FindOp("double_it"), &op);
    EXPECT_EQ(AllOps().back(), &op);
    EXPECT_GT(OpTableVersion(), version);
    graph = ParseGraph(kText);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const absl::Status legal = VerifyGraph(*graph);
    EXPECT_TRUE(legal.ok()) << legal;
    // Moving it keeps the entry.
    Registration moved = *std::move(registration);
    EXPECT_EQ(FindOp("double_it"), &op);
  }
  EXPECT_EQ(FindOp("double_it"), nullptr);
  EXPECT_EQ(AllOps().size(), before);
  EXPECT_FALSE(VerifyGraph(*graph).ok());
}

TEST(RegisterOp, ItsRuleIsObeyed) {
  const OpDef op = GoodOp();
  const absl::StatusOr<Registration> registration = RegisterOp(&op);
  ASSERT_TRUE(registration.ok());
  absl::StatusOr<Graph> graph = ParseGraph(
      "graph t tokens<=4 rows<=4 context<=4\n%0 = input x  f32[T,8]\n"
      "%1 = double_it(%0, %0)  f32[T,8]\noutput y = %1\n");
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(VerifyGraph(*graph).message(),
              HasSubstr("double_it has 2 operands, want 1"));
}

void ExpectRefused(const OpDef* op, const std::string& why) {
  const size_t before = AllOps().size();
  const absl::StatusOr<Registration> registration = RegisterOp(op);
  EXPECT_EQ(registration.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(registration.status().message(), HasSubstr(why));
  EXPECT_EQ(AllOps().size(), before);
}

TEST(RegisterOp, RefusesWhatIsNotWhole) {
  ExpectRefused(nullptr, "give it a name");
  OpDef op = GoodOp();
  for (const char* name : {"", "Double", "2x", "double it", "double-it"}) {
    op.name = name;
    ExpectRefused(&op, "give it a name");
  }
  op.name = nullptr;
  ExpectRefused(&op, "give it a name");
  op = GoodOp();
  op.infer = nullptr;
  ExpectRefused(&op, "double_it: give it a rule");
  op = GoodOp();
  op.reference = nullptr;
  ExpectRefused(&op, "double_it: give it a reference function");
  op = GoodOp();
  op.view = true;
  ExpectRefused(&op, "double_it: it is a view");
}

TEST(RegisterOp, RefusesNamesThatAreTaken) {
  OpDef op = GoodOp();
  op.name = "matmul";
  ExpectRefused(&op, "matmul: there is one of this name");
  const OpDef first = GoodOp(), second = GoodOp();
  const absl::StatusOr<Registration> registration = RegisterOp(&first);
  ASSERT_TRUE(registration.ok());
  ExpectRefused(&second, "there is one of this name");
}

TEST(RegisterOp, MayComeAgain) {
  const OpDef op = GoodOp();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(RegisterOp(&op).ok());
  EXPECT_EQ(FindOp("double_it"), nullptr);
}

}  // namespace
}  // namespace weft
