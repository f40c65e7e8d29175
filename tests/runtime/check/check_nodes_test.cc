#include "runtime/check/check_nodes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <random>

#include "loaders/gguf_writer.h"
#include "loaders/quantize_model.h"
#include "ops/kernels/kernel_table.h"
#include "passes/lifetimes.h"
#include "tests/runtime/check/check_model.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

ThreadPool& Threads() {
  static auto* threads = ThreadPool::Create(2).value().release();
  return *threads;
}

NodeReport Check(Plan plan, int tokens = 7) {
  const absl::Status made = MakeWeights(plan, Threads());
  EXPECT_TRUE(made.ok()) << made;
  ReferenceEvaluator evaluator;
  absl::StatusOr<NodeReport> report =
      CheckNodes(plan, SomeTokens(tokens), Threads(), &evaluator);
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

// A kernel that does what another does, and then something wrong.
using Harm = void (*)(const KernelCall& call);

class HarmfulKernel : public Kernel {
 public:
  HarmfulKernel(std::unique_ptr<Kernel> kernel, Harm harm)
      : kernel_(std::move(kernel)), harm_(harm) {}
  int phases() const override { return kernel_->phases() + 1; }
  int64_t Items(const KernelCall& call, int phase) const override {
    return phase < kernel_->phases() ? kernel_->Items(call, phase) : 1;
  }
  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    if (phase < kernel_->phases()) {
      kernel_->Run(call, phase, begin, end);
    } else {
      harm_(call);
    }
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Harm harm_;
};

class HarmfulRow : public KernelEntry {
 public:
  HarmfulRow(const KernelEntry& row, Harm harm)
      : KernelEntry("harmful", row.op(), row.isa(), row.weight_layout(),
                    row.summation()),
        row_(row),
        harm_(harm) {}
  bool Computes(const Node& node) const override { return row_.Computes(node); }
  std::string Refuses(const NodeView& view) const override {
    return row_.Refuses(view);
  }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<HarmfulKernel>(row_.Create(view), harm_);
  }
  int64_t ScratchBytes(const NodeView& view) const override {
    return row_.ScratchBytes(view);
  }
  int64_t ThreadScratchBytes(const NodeView& view) const override {
    return row_.ThreadScratchBytes(view);
  }

 private:
  const KernelEntry& row_;
  const Harm harm_;
};

using Compile = absl::StatusOr<Plan> (*)();

absl::StatusOr<Plan> CompileEmbedded() {
  return CompileDefault(CheckOptions({8}));
}

// The kernel that the plan has for this op.
const KernelEntry& KernelOf(const std::string& op, Compile compile) {
  const absl::StatusOr<Plan> plan = compile();
  EXPECT_TRUE(plan.ok()) << plan.status();
  const Graph& graph = plan->buckets[0];
  for (NodeId id : graph.order()) {
    if (op == graph.node(id).op->name) {
      return *FindKernel(graph.node(id).kernel);
    }
  }
  ADD_FAILURE() << "no node " << op;
  return *AllKernels()[0];
}

NodeReport CheckWith(const std::string& op, Harm harm,
                     Compile compile = CompileEmbedded) {
  absl::StatusOr<Registration> planted =
      RegisterKernel(std::make_unique<HarmfulRow>(KernelOf(op, compile), harm));
  EXPECT_TRUE(planted.ok()) << planted.status();
  absl::StatusOr<Plan> plan = compile();
  EXPECT_TRUE(plan.ok()) << plan.status();
  return Check(*std::move(plan));
}

// A model of 8-bit matrices whose embeddings are eighths and quarters, and
// whose norms leave them so: rounded to 8 bits, half of them lie in the middle
// of two numbers.
absl::StatusOr<Plan> CompileEighths() {
  const std::string path = ::testing::TempDir() + "/eighths.gguf";
  absl::StatusOr<GgufFile> plain =
      OpenModel("tests/data/malformed/00-valid.gguf");
  if (!plain.ok()) return plain.status();
  std::mt19937 random(5);
  std::list<std::vector<float>> numbers;
  GgufWriter writer;
  writer.CopyMetadata(*plain);
  for (const GgufTensor& tensor : plain->tensors()) {
    absl::Span<const uint8_t> data = tensor.data;
    const bool embedding = tensor.name == "token_embd.weight";
    if (embedding || tensor.dims.size() == 1) {
      numbers.emplace_back(data.size() / sizeof(float), 1.0f);
      for (float& x : numbers.back()) {
        if (!embedding) break;
        x = (random() % 2 == 0 ? 0.125f : 0.25f) *
            (random() % 2 == 0 ? 1.0f : -1.0f);
      }
      data = absl::MakeConstSpan(
          reinterpret_cast<const uint8_t*>(numbers.back().data()), data.size());
    }
    writer.AddTensor(tensor.name, tensor.type, tensor.dims, data);
  }
  absl::Status written = writer.WriteTo(path);
  if (!written.ok()) return written;
  QuantizeOptions quantize;
  quantize.type = "Q8_0";
  quantize.tensor_types = {"token_embd*=F32"};
  const auto report = QuantizeModel(path, path, quantize);
  if (!report.ok()) return report.status();
  absl::StatusOr<GgufFile> file = OpenModel(path);
  if (!file.ok()) return file.status();
  return CompileModel(*file, CheckOptions({8, 32}));
}

NodeId FindNode(const Graph& graph, const std::string& op,
                const std::string& name) {
  for (NodeId id : graph.order()) {
    if (op == graph.node(id).op->name && graph.node(id).name == name) return id;
  }
  ADD_FAILURE() << "no node " << op << " " << name;
  return graph.order()[0];
}

TEST(CheckNodes, EveryNodeOfEveryBucketAgreesWithItsReference) {
  for (const char* kv_type : {"f16", "q8_0", "bf16", "f32"}) {
    ModelOptions options = CheckOptions({1, 8, 32});
    options.graph.kv_type = *DTypeFromName(kv_type);
    absl::StatusOr<Plan> plan = CompileDefault(options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const NodeReport report = Check(*plan, 10);
    EXPECT_THAT(report.faults, IsEmpty());
    ASSERT_EQ(report.checks.size(), 3u);
    for (const NodeCheck& check : report.checks) {
      EXPECT_EQ(check.steps, 2);
      EXPECT_GT(check.nodes, 60);
      EXPECT_LT(check.worst, 1);
    }
  }
}

TEST(CheckNodes, SoItIsWithoutPassesAndOnEveryInstructionSet) {
  ModelOptions plain = CheckOptions({8});
  plain.compile.disabled_passes = {"quantize-activations", "fuse-attention",
                                   "choose-kernels", "plan-buffers"};
  std::vector<ModelOptions> all = {plain};
  for (Isa isa : {Isa::kRef, kLeastIsa}) {
    ModelOptions options = CheckOptions({8});
    options.compile.isa = isa;
    if (Includes(DetectIsa(), isa)) all.push_back(options);
  }
  for (const ModelOptions& options : all) {
    absl::StatusOr<Plan> plan = CompileDefault(options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(Check(*plan).faults, IsEmpty());
  }
}

TEST(CheckNodes, AWrongKernelIsFoundWithItsNode) {
  const NodeReport report = CheckWith("attention", [](const KernelCall& call) {
    const Operand& y = call.outputs[0];
    if (y.rows < 2) return;
    float* row =
        reinterpret_cast<float*>(static_cast<uint8_t*>(y.data) + y.row_bytes);
    row[3] += 0.01f;
  });
  // In every block, and nothing else: later nodes are judged on what they got.
  ASSERT_EQ(report.faults.size(), 4u);
  EXPECT_EQ(report.faults[0].node, "blk.0.attention");
  EXPECT_EQ(report.faults[0].kernel, "harmful");
  EXPECT_THAT(report.faults[0].fault, HasSubstr("row 1 column 3"));
  for (const NodeFault& fault : report.faults) EXPECT_EQ(fault.op, "attention");
}

TEST(CheckNodes, WhatLiesInTheMiddleOfTwoMayBeRoundedEitherWay) {
  absl::StatusOr<Plan> plan = CompileEighths();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Check(*std::move(plan), 40).faults, IsEmpty());
}

TEST(CheckNodes, AWrongKernelIsFoundWhereNumbersLieInTheMiddleOfTwo) {
  const NodeReport report = CheckWith(
      "fused_matmul",
      [](const KernelCall& call) {
        const Operand& y = call.outputs[0];
        if (y.rows < 2 || y.row_bytes == 0)
          return;  // rounded rows lie in tiles
        float* row = reinterpret_cast<float*>(static_cast<uint8_t*>(y.data) +
                                              y.row_bytes);
        row[3] += 0.1f;
      },
      CompileEighths);
  ASSERT_FALSE(report.faults.empty());
  EXPECT_EQ(report.faults[0].node, "blk.0.attn_qkv");
  EXPECT_EQ(report.faults[0].kernel, "harmful");
  EXPECT_THAT(report.faults[0].fault, HasSubstr("row 1 column 3"));
}

TEST(CheckNodes, NotANumberIsAFault) {
  const NodeReport report = CheckWith("rope", [](const KernelCall& call) {
    static_cast<float*>(call.outputs[0].data)[0] = NAN;
  });
  ASSERT_FALSE(report.faults.empty());
  EXPECT_EQ(report.faults[0].node, "blk.0.rope_q");
}

TEST(CheckNodes, AWrongKeyInTheCacheIsFound) {
  const NodeReport report =
      CheckWith("rope_kv_write", [](const KernelCall& call) {
        const KvState& state = *call.inputs[0].state;
        // The first number of the first position of slot 0.
        uint8_t* page = state.pages + state.page_table[0] * state.page_bytes;
        page[1] ^= 0x40;
      });
  ASSERT_FALSE(report.faults.empty());
  EXPECT_EQ(report.faults[0].node, "blk.0.keys");
}

// Moves the result of one node onto that of another which is still read.
TEST(CheckNodes, AnOverlappingBufferIsFoundWithWhoWroteIt) {
  absl::StatusOr<Plan> plan = CompileDefault(CheckOptions({8}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  Graph& graph = plan->buckets[0];
  const NodeId writer = FindNode(graph, "embed", "token_embd");
  const NodeId clobber = FindNode(graph, "attention", "blk.0.attention");
  const NodeId reader = FindNode(graph, "fused_matmul", "blk.0.attn_output");
  ASSERT_EQ(graph.node(reader).inputs.back(), graph.node(writer).outputs[0]);
  ASSERT_NE(graph.value(graph.node(clobber).outputs[0]).offset,
            graph.value(graph.node(writer).outputs[0]).offset);
  graph.value(graph.node(clobber).outputs[0]).offset =
      graph.value(graph.node(writer).outputs[0]).offset;
  const NodeReport report = Check(*std::move(plan));
  ASSERT_FALSE(report.faults.empty());
  EXPECT_EQ(report.faults[0].node, "blk.0.attention");
  EXPECT_THAT(report.faults[0].fault,
              HasSubstr("overwrites the result of token_embd before "
                        "blk.0.attn_output reads it"));
}

TEST(CheckNodes, OverlappingScratchIsFoundToo) {
  absl::StatusOr<Plan> plan = CompileDefault(CheckOptions({8}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  Graph& graph = plan->buckets[0];
  const NodeId writer = FindNode(graph, "embed", "token_embd");
  const NodeId clobber = FindNode(graph, "fused_matmul", "blk.0.attn_qkv");
  ASSERT_GE(graph.node(clobber).scratch_offset, 0);
  graph.node(clobber).scratch_offset =
      graph.value(graph.node(writer).outputs[0]).offset;
  const NodeReport report = Check(*std::move(plan));
  ASSERT_FALSE(report.faults.empty());
  EXPECT_THAT(report.faults[0].node, HasSubstr("blk.0.attn_"));
}

TEST(CheckNodes, MoreTokensThanTheContextAreAnError) {
  absl::StatusOr<Plan> plan = CompileDefault(CheckOptions({64}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(MakeWeights(*plan, Threads()).ok());
  ReferenceEvaluator evaluator;
  EXPECT_FALSE(CheckNodes(*plan, SomeTokens(65), Threads(), &evaluator).ok());
}

}  // namespace
}  // namespace weft
