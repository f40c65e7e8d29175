// Plans with an op, a kernel and a pass that a program registered: compiled,
// saved, loaded, and refused by a program that does not have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "runtime/api/engine.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kModel[] = "tests/data/malformed/00b-valid-micro.gguf";

absl::StatusOr<std::vector<ValueType>> InferSame(const Graph& graph,
                                                 const Node& node) {
  if (node.inputs.size() != 1) {
    return absl::InvalidArgumentError("want one operand");
  }
  return std::vector<ValueType>{graph.value(node.inputs[0]).type};
}

void RunSilu(const ReferenceCall& call) {
  for (int64_t row = 0; row < call.outputs[0].rows; ++row) {
    const auto at = [row](const Operand& operand) {
      return reinterpret_cast<float*>(static_cast<uint8_t*>(operand.data) +
                                      row * operand.row_bytes);
    };
    const float* x = at(call.inputs[0]);
    float* y = at(call.outputs[0]);
    for (int64_t i = 0; i < call.outputs[0].columns; ++i) {
      y[i] = static_cast<float>(x[i] / (1.0 + std::exp(-double(x[i]))));
    }
  }
}

constexpr OperandSchema kOneOperand[] = {RowsOperand("x")};
constexpr OperandSchema kTwoOperands[] = {RowsOperand("x"),
                                          RowsOperand("positions")};

const OpDef* Swish() {
  static const OpDef op = [] {
    OpDef def;
    def.name = "swish";
    def.operands = kOneOperand;
    def.infer = InferSame;
    def.reference = RunSilu;
    return def;
  }();
  return &op;
}

absl::Status UseSwish(Graph& graph, const PassOptions&) {
  for (NodeId id : graph.order()) {
    if (graph.node(id).Is(kSiluOp)) graph.node(id).Become(*Swish());
  }
  return absl::OkStatus();
}

absl::Status Nothing(Graph&, const PassOptions&) { return absl::OkStatus(); }

class SwishKernel : public Kernel {
 public:
  int64_t Items(const KernelCall&, int) const override { return 1; }
  void Run(const KernelCall& call, int, int64_t, int64_t) const override {
    const Graph none;
    const Node node;
    RunSilu({none, node, call.inputs, call.outputs, {}});
  }
};

class SwishRow : public KernelEntry {
 public:
  SwishRow()
      : KernelEntry("swish_any_ref", "swish", Isa::kRef, "", "float64") {}
  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView&) const override {
    return std::make_unique<SwishKernel>();
  }
};

// All three, for as long as this lives.
struct Extension {
  absl::StatusOr<Registration> op = RegisterOp(Swish());
  absl::StatusOr<Registration> kernel =
      RegisterKernel(std::make_unique<SwishRow>());
  absl::StatusOr<Registration> pass =
      RegisterPass({"use-swish", UseSwish, false}, "common-subexpression");
  bool ok() const { return op.ok() && kernel.ok() && pass.ok(); }
};

ModelOptions Options() {
  ModelOptions options = DefaultModelOptions();
  options.compile.buckets = {1, 8};
  return options;
}

std::string TempPath(const std::string& file) {
  return ::testing::TempDir() + "/" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + file;
}

absl::Status Save(const std::string& path, const ModelOptions& options) {
  absl::StatusOr<Plan> plan = LoadPlan(kModel, options);
  if (!plan.ok()) return plan.status();
  return SavePlan(*plan, path, **ThreadPool::Create(1));
}

absl::Status SaveByReference(const std::string& path,
                             const ModelOptions& options) {
  absl::StatusOr<GgufFile> file = OpenModel(kModel);
  if (!file.ok()) return file.status();
  absl::StatusOr<Plan> plan = CompileModel(*file, options);
  if (!plan.ok()) return plan.status();
  return SaveModelReference(*plan, *file, kModel, options, path);
}

std::vector<float> Logits(const std::string& path) {
  EngineOptions options;
  options.model = Options();
  options.threads = 1;
  auto engine = Engine::Load(path, options);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  std::vector<float> logits;
  const absl::Status s = (*engine)->Evaluate(
      {1, 2, 3, 4, 5}, {0, 2, 4}, 3, [&](int64_t, absl::Span<const float> row) {
        logits.insert(logits.end(), row.begin(), row.end());
        return absl::OkStatus();
      });
  EXPECT_TRUE(s.ok()) << s;
  return logits;
}

TEST(ExtendedPlan, RunsFromModelAndFromFileAlike) {
  const Extension extension;
  ASSERT_TRUE(extension.ok());
  const std::string path = TempPath("plan.weft");
  ASSERT_TRUE(Save(path, Options()).ok());
  absl::StatusOr<Plan> plan = LoadPlan(path, Options());
  ASSERT_TRUE(plan.ok()) << plan.status();
  int swish = 0;
  for (NodeId id : plan->buckets[0].order()) {
    const Node& node = plan->buckets[0].node(id);
    swish += absl::string_view(node.op->name) == "swish" &&
             node.kernel == "swish_any_ref";
  }
  EXPECT_GT(swish, 0);
  const std::vector<float> a = Logits(kModel), b = Logits(path);
  EXPECT_FALSE(a.empty());
  EXPECT_EQ(a, b);
}

TEST(ExtendedPlan, IsRefusedWhereOpAndKernelAreMissing) {
  const std::string path = TempPath("plan.weft");
  {
    const Extension extension;
    ASSERT_TRUE(extension.ok());
    ASSERT_TRUE(Save(path, Options()).ok());
  }
  const absl::Status s = LoadPlan(path, Options()).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(s.message()),
              AllOf(HasSubstr(path), HasSubstr("kernel swish_any_ref"),
                    HasSubstr("op swish"), Not(HasSubstr("matmul"))));
  // The op alone is not enough.
  const absl::StatusOr<Registration> op = RegisterOp(Swish());
  ASSERT_TRUE(op.ok());
  EXPECT_THAT(std::string(LoadPlan(path, Options()).status().message()),
              AllOf(HasSubstr(": kernel swish_any_ref:")));
}

TEST(ExtendedPlan, NeedsNoPassThatRanAlready) {
  const std::string path = TempPath("plan.weft");
  {
    const absl::StatusOr<Registration> pass =
        RegisterPass({"do-nothing", Nothing, false}, "");
    ASSERT_TRUE(pass.ok());
    ASSERT_TRUE(Save(path, Options()).ok());
  }
  absl::StatusOr<Plan> plan = LoadPlan(path, Options());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->passes[0].name, "do-nothing");
}

TEST(ExtendedPlan, ADisabledPassMustExist) {
  const std::string path = TempPath("plan.weft");
  {
    const absl::StatusOr<Registration> pass =
        RegisterPass({"do-nothing", Nothing, false}, "");
    ASSERT_TRUE(pass.ok());
    ModelOptions options = Options();
    options.compile.disabled_passes = {"do-nothing"};
    ASSERT_TRUE(Save(path, options).ok());
    EXPECT_TRUE(LoadPlan(path, Options()).ok());
  }
  EXPECT_THAT(std::string(LoadPlan(path, Options()).status().message()),
              HasSubstr("no such pass: do-nothing"));
}

TEST(ExtendedPlan, ByReferenceIsCompiledAgainWithTheSamePassesOnly) {
  const std::string plain = TempPath("plain.weft"),
                    extended = TempPath("extended.weft");
  ASSERT_TRUE(SaveByReference(plain, Options()).ok());
  EXPECT_TRUE(LoadPlan(plain, Options()).ok());
  {
    const absl::StatusOr<Registration> pass =
        RegisterPass({"do-nothing", Nothing, false}, "fuse-qkv");
    ASSERT_TRUE(pass.ok());
    ASSERT_TRUE(SaveByReference(extended, Options()).ok());
    EXPECT_TRUE(LoadPlan(extended, Options()).ok());
    const absl::Status s = LoadPlan(plain, Options()).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(s.message()),
                AllOf(HasSubstr(plain), HasSubstr("not there: do-nothing:")));
  }
  EXPECT_THAT(std::string(LoadPlan(extended, Options()).status().message()),
              AllOf(HasSubstr(extended), HasSubstr("not here: do-nothing:")));
  // At another place it is another pipeline.
  const absl::StatusOr<Registration> pass =
      RegisterPass({"do-nothing", Nothing, false}, "dead-code");
  ASSERT_TRUE(pass.ok());
  EXPECT_THAT(std::string(LoadPlan(extended, Options()).status().message()),
              HasSubstr("their order is another"));
}

TEST(ExtendedPlan, ByReferenceKeepsDisabledPasses) {
  const std::string path = TempPath("plan.weft");
  ModelOptions options = Options();
  options.compile.disabled_passes = {"fuse-attention", "schedule"};
  ASSERT_TRUE(SaveByReference(path, options).ok());
  const absl::StatusOr<Plan> plan = LoadPlan(path, Options());
  ASSERT_TRUE(plan.ok()) << plan.status();
}

// An op that takes integers must say what they are, or nobody could see to
// their range.
TEST(ExtendedPlan, IntegersThatNobodyDeclaredAreRefused) {
  static OpDef op = *Swish();
  op.name = "shift_rows";
  op.operands = kTwoOperands;
  op.infer = [](const Graph& graph,
                const Node& node) -> absl::StatusOr<std::vector<ValueType>> {
    return std::vector<ValueType>{graph.value(node.inputs[0]).type};
  };
  const absl::StatusOr<Registration> registration = RegisterOp(&op);
  ASSERT_TRUE(registration.ok());
  const PassFunction use = [](Graph& graph, const PassOptions&) {
    for (NodeId id : graph.order()) {
      Node& node = graph.node(id);
      if (!node.Is(kSiluOp)) continue;
      node.Become(op);
      node.inputs.push_back(graph.FindValue("positions"));
    }
    return absl::OkStatus();
  };
  const absl::StatusOr<Registration> pass =
      RegisterPass({"use-shift", use, false}, "dead-code");
  ASSERT_TRUE(pass.ok());
  EXPECT_THAT(std::string(LoadPlan(kModel, Options()).status().message()),
              AllOf(HasSubstr("shift_rows"), HasSubstr("cannot be "),
                    HasSubstr("positions")));
  const OperandSchema indices[] = {
      RowsOperand("x"), IndexOperand("positions", IndexKind::kPosition, 0)};
  op.operands = indices;
  const absl::Status s = LoadPlan(kModel, Options()).status();
  EXPECT_TRUE(s.ok()) << s;
}

}  // namespace
}  // namespace weft
