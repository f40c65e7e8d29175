// An op of one's own, y = max(x, 0)^2 (So et al. 2021, arXiv:2109.08668), in a
// graph that is written as text.
//   bazel run //examples:custom_op
//
// A name, a rule for the type of its result, and a function that computes it:
// with these three it prints, parses, compiles, goes into plan files and runs.
// A kernel makes it fast, and is optional.
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "graph/text_format.h"
#include "ops/kernels/kernel_table.h"
#include "ops/op_table.h"
#include "ops/reference.h"
#include "runtime/execution/graph_runner.h"

namespace {

using namespace weft;

// --- The op.

absl::StatusOr<std::vector<ValueType>> Infer(const Graph& graph,
                                             const Node& node) {
  WEFT_RETURN_IF_ERROR(WantFloatMatrix(graph, node, 0));
  return std::vector<ValueType>{OperandType(graph, node, 0)};
}

void Reference(const ReferenceCall& call) {
  for (int64_t row = 0; row < call.outputs[0].rows; ++row) {
    std::vector<double> x = ReadRow(call, 0, row);
    for (double& value : x) value = value > 0 ? value * value : 0;
    WriteRow(call, 0, row, x);
  }
}

constexpr OperandSchema kOperands[] = {RowsOperand("x")};

constexpr OpDef ReluSquaredRecord() {
  OpDef op;
  op.name = "relu_squared";
  op.meaning = "max(x, 0)^2";
  op.operands = kOperands;
  op.primitive = true;
  // The planner may give the result the operand's memory.
  op.in_place_operand = FirstOperand;
  op.infer = Infer;
  op.reference = Reference;
  return op;
}

constexpr OpDef kReluSquared = ReluSquaredRecord();

// --- A kernel: the rows are cut over the threads.

class ReluSquared : public Kernel {
 public:
  int64_t Items(const KernelCall& call, int) const override {
    return call.outputs[0].rows;
  }
  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const Operand &in = call.inputs[0], &out = call.outputs[0];
    for (int64_t row = begin; row < end; ++row) {
      const float* x = reinterpret_cast<const float*>(
          static_cast<const uint8_t*>(in.data) + row * in.row_bytes);
      float* y = reinterpret_cast<float*>(static_cast<uint8_t*>(out.data) +
                                          row * out.row_bytes);
      for (int64_t i = 0; i < out.columns; ++i) {
        const float positive = std::max(x[i], 0.0f);
        y[i] = positive * positive;
      }
    }
  }
};

class ReluSquaredRow : public KernelEntry {
 public:
  // Element by element there is one order of summation, that of the reference.
  ReluSquaredRow()
      : KernelEntry("relu_squared_f32_ref", "relu_squared", Isa::kRef,
                    /*weight_layout=*/"", /*summation=*/"float64") {}
  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView&) const override {
    return std::make_unique<ReluSquared>();
  }
};

// --- A graph with it.

constexpr char kGraph[] = R"(
graph feed_forward  tokens<=8 rows<=8 context<=1
  $up = weight    f32[3,2]
  $down = weight  f32[2,3]
  %0 = input x              f32[T,2]
  %1 = matmul(%0, $up)      f32[T,3]
  %2 = relu_squared(%1)     f32[T,3]
  %3 = matmul(%2, $down)    f32[T,2]
  output y = %3
)";

absl::StatusOr<std::vector<float>> Run(std::string* kernel) {
  absl::StatusOr<Graph> graph = ParseGraph(kGraph);
  if (!graph.ok()) return graph.status();
  NamedWeights weights;
  absl::StatusOr<WeightData> up =
      EncodeWeight(DType::kF32, 2, {1, 0, 0, 1, 1, -1});
  absl::StatusOr<WeightData> down =
      EncodeWeight(DType::kF32, 3, {1, 1, 1, 0, 0, 1});
  if (!up.ok() || !down.ok()) return absl::InternalError("no weights");
  weights["up"] = *up;
  weights["down"] = *down;
  auto runner = GraphRunner::Create(*std::move(graph), weights);
  if (!runner.ok()) return runner.status();
  const Graph& planned = (*runner)->plan().buckets.front();
  for (NodeId id : planned.order()) {
    const Node& node = planned.node(id);
    if (node.Is(kReluSquared)) *kernel = node.kernel;
  }
  const std::vector<float> x = {1, 2, -3, 1};  // two rows
  std::vector<float> y(4);
  absl::Status s = (*runner)->Run({{"x", absl::MakeConstSpan(x)}},
                                  {{"y", absl::MakeSpan(y)}});
  if (!s.ok()) return s;
  return y;
}

int Print() {
  std::string kernel;
  absl::StatusOr<std::vector<float>> y = Run(&kernel);
  if (!y.ok()) return std::cerr << y.status().message() << "\n", 1;
  std::cout << kernel << ":";
  for (float value : *y) std::cout << " " << value;
  std::cout << "\n";
  return 0;
}

}  // namespace

int main() {
  const auto op = RegisterOp(&kReluSquared);
  if (!op.ok()) return std::cerr << op.status().message() << "\n", 1;
  if (Print() != 0) return 1;  // by its reference function
  const auto kernel = RegisterKernel(std::make_unique<ReluSquaredRow>());
  if (!kernel.ok()) return std::cerr << kernel.status().message() << "\n", 1;
  return Print();
}
