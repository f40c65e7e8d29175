// expert_add and expert_mul: one operation for each element, with a number of
// whoever was chosen. Passes put biases into the product before them.
#include "absl/strings/str_cat.h"
#include "ops/kernels/experts/expert_kernels.h"
#include "ops/ops.h"

namespace weft {
namespace {

void Add(const float* x, const float* own, int64_t n, float* y) {
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] + own[k];
}

void Multiply(const float* x, const float* own, int64_t n, float* y) {
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] * own[k];
}

using Function = void (*)(const float* x, const float* own, int64_t n,
                          float* y);

class ExpertRowsNode : public Kernel {
 public:
  explicit ExpertRowsNode(Function function) : function_(function) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const Operand& x = call.inputs[0];
    const Operand& y = call.outputs[0];
    const int64_t used = call.inputs[2].columns;
    const int64_t n = x.columns / used;
    const auto* own = static_cast<const float*>(call.inputs[1].data);
    const auto* ids = static_cast<const int32_t*>(call.inputs[2].data);
    for (int64_t row = begin; row < end; ++row) {
      const auto* from = reinterpret_cast<const float*>(
          static_cast<const uint8_t*>(x.data) + row * x.row_bytes);
      auto* to = reinterpret_cast<float*>(static_cast<uint8_t*>(y.data) +
                                          row * y.row_bytes);
      for (int64_t i = 0; i < used; ++i) {
        function_(from + i * n, own + ids[row * used + i] * n, n, to + i * n);
      }
    }
  }

 private:
  const Function function_;
};

class ExpertRowsRow : public KernelEntry {
 public:
  ExpertRowsRow(const OpSchema& op, Function function)
      : KernelEntry(absl::StrCat(op.name, "_any_row"), op.name, Isa::kRef, "",
                    "exact"),
        function_(function) {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView&) const override {
    return std::make_unique<ExpertRowsNode>(function_);
  }

 private:
  const Function function_;
};

}  // namespace

void AddExpertRowsKernels(KernelEntries* rows) {
  rows->push_back(std::make_unique<ExpertRowsRow>(kExpertAddOp, Add));
  rows->push_back(std::make_unique<ExpertRowsRow>(kExpertMulOp, Multiply));
}

}  // namespace weft
