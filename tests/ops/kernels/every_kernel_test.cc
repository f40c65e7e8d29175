// Every row of the kernel table that runs here, on the graphs that the kernel
// benchmark builds for it: its results are near those of the op's reference
// function; they have the same bits however the work is cut, in the memory of
// an operand or not, however many rows come behind, and those of all other rows
// of its summation order; and it writes nowhere else. A new row is tested
// without a line here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/kernels/kernel_cases.h"
#include "benchmarks/kernels/kernel_operands.h"
#include "graph/text_format.h"
#include "ops/experts.h"
#include "ops/formats/formats.h"
#include "ops/kernels/kernel_table.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "runtime/check/check_nodes.h"

namespace weft {
namespace {

using Bytes = std::vector<uint8_t>;

struct Numbers {
  const char* name;
  FillFunction fill;
};

FillFunction Scaled(float scale) {
  return [scale](std::mt19937& random, int64_t count, float* out) {
    FillUniform(random, count, out);
    for (int64_t i = 0; i < count; ++i) out[i] *= scale;
  };
}

// Mostly small, with a large number now and then and some zeros.
void FillSpikes(std::mt19937& random, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t kind = random() % 32;
    FillUniform(random, 1, out + i);
    out[i] *= kind == 0 ? 1e3f : kind < 8 ? 0.0f : 1e-2f;
  }
}

const Numbers kNumbers[] = {
    {"uniform", FillUniform}, {"zeros", Scaled(0)},
    {"large", Scaled(1e3f)},  {"huge", Scaled(3e4f)},
    {"tiny", Scaled(1e-20f)}, {"denormal", Scaled(1e-39f)},
    {"spikes", FillSpikes},
};

bool HasMinimums(DType type) {
  switch (type) {
#define WEFT_CASE(TYPE, ...) \
  case DType::k##TYPE:       \
    return BlockFormat<Block##TYPE>::kHasMin;
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_CASE)
#undef WEFT_CASE
    default:
      return false;
  }
}

FillFunction Mapped(const FillFunction& fill, float (*map)(float)) {
  return [fill, map](std::mt19937& random, int64_t count, float* out) {
    fill(random, count, out);
    std::transform(out, out + count, out, map);
  };
}

// The numbers of a value, no more than a float kernel bears.
FillFunction FillOf(const Numbers& numbers, const Value& value) {
  // A unit in the last place of a score is little to an exponential.
  if (value.name == "q" || value.name == "sinks") {
    return Mapped(numbers.fill, [](float x) {
      return std::fabs(x) > 1 ? std::copysign(0.25f, x) : x;
    });
  }
  // Decays make a state no larger.
  if (value.name == "a") {
    return Mapped(numbers.fill, [](float x) { return -std::fabs(x); });
  }
  // Kernels add products with integers and with minimums apart: where spikes
  // meet, both are large and cancel. Those of the weights are 0.1.
  if (HasMinimums(value.type.dtype) &&
      numbers.name == absl::string_view("spikes")) {
    return Mapped(numbers.fill,
                  [](float x) { return std::clamp(x, -0.1f, 0.1f); });
  }
  if (value.type.dtype == DType::kNVFP4) {  // it holds no more
    return Mapped(numbers.fill,
                  [](float x) { return std::clamp(x, -2688.0f, 2688.0f); });
  }
  return numbers.fill;
}

// Scores of attention would be so large that one unit of their last place is
// more than an exponential bears.
bool TooLarge(const Numbers& numbers, const std::string& graph) {
  return numbers.name == absl::string_view("huge") &&
         absl::StrContains(graph, "state ");
}

struct Dimensions {
  const char* name;
  CaseSizes sizes;
  int64_t tokens;
  int64_t fewer;  // even, for the indices that KernelOperands makes
};

void PrintTo(const Dimensions& dimensions, std::ostream* out) {
  *out << dimensions.name;
}

// columns, inner, heads, kv_heads, head_dim, context, around.
const Dimensions kDimensions[] = {
    {"Blocks", {256, 128, 4, 2, 32, 64}, 7, 4},
    {"Tails", {512, 112, 6, 2, 96, 200}, 33, 8},
    {"Odd", {77, 45, 3, 3, 20, 130}, 13, 6},
    {"OddHeads", {33, 17, 7, 1, 33, 65}, 5, 2},
    {"Ones", {1, 2, 1, 1, 1, 1}, 1, 1},
    {"BlocksOf32", {288, 48, 2, 1, 64, 128}, 2, 2},
    {"ManyRows", {256, 96, 2, 2, 64, 96}, 70, 16},
    {"Windows", {256, 64, 2, 1, 32, 64, 7}, 9, 4},
};

Bytes BytesOf(const ValueType& type, const Bounds& step, const Operand& y) {
  const uint8_t* data = static_cast<const uint8_t*>(y.data);
  return Bytes(data, data + StorageBytes(type, step));
}

std::vector<Bytes> Results(const KernelOperands& operands) {
  std::vector<Bytes> results;
  for (size_t i = 0; i < operands.outputs().size(); ++i) {
    results.push_back(
        BytesOf(operands.graph().value(operands.node().outputs[i]).type,
                operands.step(), operands.outputs()[i]));
  }
  return results;
}

std::vector<Bytes> RunReference(KernelOperands* operands) {
  operands->Restore();
  OpOf(operands->node())
      .reference({operands->graph(), operands->node(),
                  operands->inputs().data(), operands->outputs().data(),
                  operands->step()});
  return Results(*operands);
}

// Memory at a multiple of 64 bytes, full of NaN, with a guard behind it.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : bytes_(bytes), memory_(bytes + 128, 0xff) {}
  uint8_t* data() {
    return memory_.data() +
           (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
  }
  bool GuardIntact() {
    for (int64_t i = 0; i < 64; ++i) {
      if (data()[bytes_ + i] != 0xff) return false;
    }
    return true;
  }

 private:
  const int64_t bytes_;
  Bytes memory_;
};

enum class How { kWhole, kItemByItemBackwards, kInPlace };

// The operand in whose memory the result may lie; -1 where it cannot.
int InPlaceOperand(const KernelOperands& operands) {
  const Node& node = operands.node();
  const OpDef& op = OpOf(node);
  const int i = op.in_place_operand == nullptr ? -1 : op.in_place_operand(node);
  if (i < 0) return -1;
  const Graph& graph = operands.graph();
  const bool alike =
      graph.value(node.inputs[i]).type == graph.value(node.outputs[0]).type &&
      operands.inputs()[i].row_bytes == operands.outputs()[0].row_bytes;
  return alike ? i : -1;
}

std::vector<Bytes> RunKernel(const KernelEntry& row, How how,
                             KernelOperands* operands) {
  operands->Restore();
  std::vector<Operand> inputs = operands->inputs();
  const int in_place = how == How::kInPlace ? InPlaceOperand(*operands) : -1;
  if (in_place >= 0) {
    const Operand& y = operands->outputs()[0];
    std::memcpy(y.data, inputs[in_place].data, y.rows * y.row_bytes);
    inputs[in_place] = y;
  }
  const NodeView view = {operands->graph(), operands->node(), {row.isa()}};
  const std::unique_ptr<Kernel> kernel = row.Create(view);
  Scratch shared(row.ScratchBytes(view));
  Scratch own(row.ThreadScratchBytes(view));
  const KernelCall call = {inputs.data(), operands->outputs().data(),
                           shared.data(), own.data()};
  for (int phase = 0; phase < kernel->phases(); ++phase) {
    const int64_t items = kernel->Items(call, phase);
    if (how == How::kWhole) {
      kernel->Run(call, phase, 0, items);
    } else {
      for (int64_t i = items; i-- > 0;) kernel->Run(call, phase, i, i + 1);
    }
  }
  EXPECT_TRUE(shared.GuardIntact()) << "left the shared scratch";
  EXPECT_TRUE(own.GuardIntact()) << "left the thread's scratch";
  EXPECT_TRUE(operands->OthersIntact()) << "wrote beside its results";
  return Results(*operands);
}

void ExpectNearReference(const KernelEntry& row, const KernelOperands& operands,
                         const std::vector<Bytes>& found,
                         const std::vector<Bytes>& want) {
  const Node& node = operands.node();
  for (size_t i = 0; i < found.size(); ++i) {
    const ValueType& type = operands.graph().value(node.outputs[i]).type;
    const Difference difference =
        Compare(type, operands.step(), Content(found[i]), Content(want[i]),
                row.tolerance());
    EXPECT_LE(difference.relative, ToleranceOf(node, row, difference))
        << "result " << i << ", row " << difference.row << ", column "
        << difference.column << ": " << difference.found << ", want "
        << difference.want;
  }
}

// What the first rows of a result hold, whatever tiles they lie in.
Bytes FirstRows(const ValueType& type, const Bounds& step, Bytes& result,
                int64_t rows) {
  const Operand operand = MatrixOperand(type, step, result.data());
  Bytes bytes;
  if (type.dtype != DType::kQ8Rows) {
    bytes.assign(result.begin(), result.begin() + rows * operand.row_bytes);
    return bytes;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < operand.columns / 32; ++b) {
      const QuantizedBlock block =
          QuantizedBlockAt(operand.data, operand.rows, operand.columns, row, b);
      bytes.insert(bytes.end(), block.q, block.q + 32);
      const uint8_t* scale = reinterpret_cast<const uint8_t*>(block.scale);
      bytes.insert(bytes.end(), scale, scale + sizeof(*block.scale));
    }
  }
  return bytes;
}

void ExpectSameFirstRows(const KernelEntry& row, const KernelOperands& operands,
                         std::vector<Bytes> all, KernelOperands* fewer) {
  if (OpOf(operands.node()).writes_state) return;
  std::vector<Bytes> found = RunKernel(row, How::kWhole, fewer);
  for (size_t i = 0; i < found.size(); ++i) {
    const ValueType& type =
        operands.graph().value(operands.node().outputs[i]).type;
    const Dim rows = type.shape[0];
    if (rows != Dim::Tokens() && rows != Dim::Rows()) continue;
    EXPECT_EQ(FirstRows(type, fewer->step(), found[i], fewer->step().tokens),
              FirstRows(type, operands.step(), all[i], fewer->step().tokens))
        << "result " << i << " depends on the rows behind";
  }
}

// Rounding the operands of large scores moves them by more than the distance of
// the largest two.
bool RoundsToAnother(const KernelEntry& row, const Numbers& numbers,
                     const std::string& graph) {
  return row.tolerance() > 1e-2 && numbers.name == absl::string_view("large") &&
         absl::StrContains(graph, "state ");
}

class EveryKernel : public testing::TestWithParam<Dimensions> {};

TEST_P(EveryKernel, IsNearItsReferenceWithTheBitsOfItsSummationOrder) {
  const Dimensions& dimensions = GetParam();
  // Rows that compute the same node, by its graph.
  std::map<std::string, std::vector<KernelCase>> groups;
  for (const auto& row : AllKernels()) {
    if (!RunsHere(row->isa()) || row->name() == row->op() + "_ref") continue;
    std::string why;
    for (KernelCase& found :
         CasesOf(*row, dimensions.tokens, dimensions.sizes, &why)) {
      groups[Dump(found.graph)].push_back(std::move(found));
    }
  }
  for (const auto& [text, cases] : groups) {
    for (const Numbers& numbers : kNumbers) {
      if (TooLarge(numbers, text)) continue;
      const auto make = [&](int64_t rows) {
        return KernelOperands::Create(
            cases.front(), rows,
            [&](const Value& value) { return FillOf(numbers, value); });
      };
      auto operands = make(dimensions.tokens);
      ASSERT_TRUE(operands.ok()) << text << operands.status();
      auto fewer = make(dimensions.fewer);
      ASSERT_TRUE(fewer.ok()) << fewer.status();
      const std::vector<Bytes> want = RunReference(operands->get());
      std::map<std::string, std::pair<std::string, std::vector<Bytes>>> orders;
      for (const KernelCase& one : cases) {
        SCOPED_TRACE(absl::StrCat(one.name, " on ", numbers.name, ":\n", text));
        const KernelEntry& row = *one.entry;
        const std::vector<Bytes> whole =
            RunKernel(row, How::kWhole, operands->get());
        if (!RoundsToAnother(row, numbers, text)) {
          ExpectNearReference(row, **operands, whole, want);
        }
        EXPECT_EQ(whole,
                  RunKernel(row, How::kItemByItemBackwards, operands->get()))
            << "depends on how the work is cut";
        EXPECT_EQ(whole, RunKernel(row, How::kInPlace, operands->get()))
            << "depends on where the result lies";
        ExpectSameFirstRows(row, **operands, whole, fewer->get());
        const auto& [first, bits] =
            orders.try_emplace(row.summation(), row.name(), whole)
                .first->second;
        EXPECT_EQ(bits, whole) << "other bits than " << first;
        if (HasFailure()) return;  // one is enough to read
      }
    }
  }
}

// Or a type or an attribute that was forgotten in a list would run, slowly, on
// the reference.
TEST(EveryCase, HasAKernelWhereItsOpHas) {
  if (kLeastIsa == Isa::kRef) GTEST_SKIP() << "kernels of another processor";
  std::set<std::string> ops;
  for (const auto& row : AllKernels()) {
    if (row->name() != row->op() + "_ref") ops.insert(row->op());
  }
  for (const auto& row : AllKernels()) {
    if (row->name() != row->op() + "_ref" || ops.count(row->op()) == 0) {
      continue;
    }
    std::string why;
    const CaseSizes sizes = {256, 128, 4, 2, 32, 64};
    for (const KernelCase& one : CasesOf(*row, 7, sizes, &why)) {
      const Node& node = one.graph.node(one.graph.order().back());
      // Weights are laid out for the kernels that there are, not the other way.
      if (node.inputs.size() > 1 && IsProduct(node) &&
          !one.graph.value(node.inputs[1]).type.layout.empty()) {
        continue;
      }
      EXPECT_NE(ChooseKernel({one.graph, node, {kLeastIsa}}).entry, row.get())
          << one.name << ":\n"
          << Dump(one.graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dimensions, EveryKernel,
                         testing::ValuesIn(kDimensions), [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace weft
