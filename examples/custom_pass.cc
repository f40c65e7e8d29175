// A pass of one's own: biases that are all zero are not added. Converters write
// such biases for models whose architecture could have them.
//   bazel run //examples:custom_pass
//
//   %1 = matmul(%0, $w)                  %1 = matmul(%0, $w)
//   %2 = add(%1, $zeros)         ->      %3 = silu(%1)
//   %3 = silu(%2)
//
// x + 0 is x, but for the sign of zero. A pass sees the graph and the bytes of
// the weights; it is verified after it ran, listed, timed, and can be disabled,
// like weft's own.
#include <algorithm>
#include <iostream>

#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "runtime/execution/graph_runner.h"

namespace {

using namespace weft;

bool IsZero(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const absl::Span<const uint8_t> bytes = value.data.bytes;
  return value.kind == ValueKind::kWeight && value.type.dtype == DType::kF32 &&
         value.type.shape.rank() == 1 && !bytes.empty() &&
         std::all_of(bytes.begin(), bytes.end(),
                     [](uint8_t byte) { return byte == 0; });
}

absl::Status DropZeroBias(Graph& graph, const PassOptions&) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (!node.Is(kAddOp) || !IsZero(graph, node.inputs[1])) continue;
    // An output is a node's own result: leave the add that makes one of what
    // is none itself.
    const ValueId sum = node.outputs[0], x = node.inputs[0];
    if (graph.IsOutput(sum)) continue;
    graph.ReplaceUses(sum, x);
  }
  graph.EraseDead();
  return absl::OkStatus();
}

constexpr char kGraph[] = R"(
graph layers  tokens<=8 rows<=8 context<=1
  $w1 = weight     f32[2,2]
  $zeros = weight  f32[2]
  $w2 = weight     f32[2,2]
  $ones = weight   f32[2]
  %0 = input x            f32[T,2]
  %1 = matmul(%0, $w1)    f32[T,2]
  %2 = add(%1, $zeros)    f32[T,2]
  %3 = silu(%2)           f32[T,2]
  %4 = matmul(%3, $w2)    f32[T,2]
  %5 = add(%4, $ones)     f32[T,2]
  output y = %5
)";

absl::Status Run(const GraphRunnerOptions& options) {
  absl::StatusOr<Graph> graph = ParseGraph(kGraph);
  if (!graph.ok()) return graph.status();
  NamedWeights weights;
  for (const auto& [name, numbers] :
       std::initializer_list<std::pair<const char*, std::vector<float>>>{
           {"w1", {1, 2, 3, 4}},
           {"zeros", {0, 0}},
           {"w2", {1, 0, 0, 1}},
           {"ones", {1, 1}}}) {
    absl::StatusOr<WeightData> data = EncodeWeight(DType::kF32, 2, numbers);
    if (!data.ok()) return data.status();
    weights[name] = *std::move(data);
  }
  auto runner = GraphRunner::Create(*std::move(graph), weights, options);
  if (!runner.ok()) return runner.status();
  for (const PassRecord& pass : (*runner)->plan().passes) {
    if (pass.name != "drop-zero-bias") continue;
    std::cout << pass.name << ": " << pass.nodes_before << " -> "
              << pass.nodes_after << " nodes\n";
  }
  const std::vector<float> x = {1, -1};
  std::vector<float> y(2);
  absl::Status s = (*runner)->Run({{"x", absl::MakeConstSpan(x)}},
                                  {{"y", absl::MakeSpan(y)}});
  if (!s.ok()) return s;
  std::cout << "y: " << y[0] << " " << y[1] << "\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const auto pass = RegisterPass(
      {"drop-zero-bias", DropZeroBias, /*per_bucket=*/false}, "dead-code");
  if (!pass.ok()) return std::cerr << pass.status().message() << "\n", 1;
  GraphRunnerOptions options;
  absl::Status s = Run(options);
  options.compile.disabled_passes = {"drop-zero-bias"};
  if (s.ok()) s = Run(options);
  if (!s.ok()) return std::cerr << s.message() << "\n", 1;
}
