// top_k: as many passes over a row as there are places. Rows are as short as
// the number of experts, so there is nothing to gain from more.
#include <bitset>

#include "ops/experts.h"
#include "ops/kernels/experts/expert_kernels.h"
#include "ops/ops.h"

namespace weft {
namespace {

template <class T>
T* RowOf(const Operand& operand, int64_t row) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(operand.data) +
                              row * operand.row_bytes);
}

class TopKNode : public Kernel {
 public:
  explicit TopKNode(const NodeView& view)
      : normalize_(view.node.attributes.As<TopKAttributes>().normalize) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) {
      Choose(RowOf<const float>(call.inputs[0], row), call.inputs[0].columns,
             RowOf<int32_t>(call.outputs[0], row),
             RowOf<float>(call.outputs[1], row), call.outputs[0].columns);
    }
  }

 private:
  // A NaN is never above another number, so that k different ones are found
  // whatever the row holds.
  void Choose(const float* x, int64_t columns, int32_t* ids, float* largest,
              int64_t k) const {
    std::bitset<kMaxExperts> taken;
    float sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      int32_t best = -1;
      for (int32_t e = 0; e < columns; ++e) {
        if (!taken[e] && (best < 0 || x[e] > x[best])) best = e;
      }
      taken[best] = true;
      ids[i] = best;
      largest[i] = x[best];
      sum += x[best];
    }
    if (!normalize_) return;
    for (int64_t i = 0; i < k; ++i) largest[i] /= sum;
  }

  const bool normalize_;
};

class TopKRow : public KernelRow {
 public:
  TopKRow() : KernelRow("top_k_any_row", "top_k", Isa::kRef, "", "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<TopKNode>(view);
  }
};

}  // namespace

void AddTopKKernels(KernelRows* rows) {
  rows->push_back(std::make_unique<TopKRow>());
}

}  // namespace weft
