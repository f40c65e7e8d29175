// top_k: as many passes over a row as there are places. Rows are as short as
// the number of experts, so there is nothing to gain from more.
#include <algorithm>
#include <bitset>
#include <cmath>

#include "base/exponentials.h"
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

// Columns that may be chosen.
using Candidates = std::bitset<kMaxExperts>;

// The largest candidate of begin .. end - 1. A NaN is never above another
// number, so that k different ones are found whatever the row holds.
int32_t Largest(const float* x, int32_t begin, int32_t end,
                const Candidates& candidates) {
  int32_t best = -1;
  for (int32_t e = begin; e < end; ++e) {
    if (candidates[e] && (best < 0 || x[e] > x[best])) best = e;
  }
  return best;
}

// The softmax of x[best] among candidates that are near it.
float MixerShare(const float* x, int64_t columns, const Candidates& candidates,
                 int32_t best, double margin) {
  double powers[kMaxExperts];
  int64_t n = 0;
  for (int32_t e = 0; e < columns; ++e) {
    if (!candidates[e]) continue;
    const double gap = (static_cast<double>(x[best]) - x[e]) /
                       std::max(std::fabs(x[e]), x[best]);
    // A NaN counts as near.
    if (!(gap > margin)) powers[n++] = std::min(0.0, double{x[e]} - x[best]);
  }
  Exponentials(absl::MakeSpan(powers, n));
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += powers[i];
  return static_cast<float>(1 / sum);
}

class TopKNode : public Kernel {
 public:
  explicit TopKNode(const NodeView& view)
      : choice_(view.node.attributes.As<TopKAttributes>()),
        columns_(view.input(0).type.shape[1].value),
        biased_(view.node.inputs.size() > 1) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = RowOf<const float>(call.inputs[0], row);
      float sums[kMaxExperts];
      const float* by = x;
      if (biased_) {
        const auto* bias = static_cast<const float*>(call.inputs[1].data);
        for (int64_t e = 0; e < columns_; ++e) sums[e] = x[e] + bias[e];
        by = sums;
      }
      Choose(x, by, RowOf<int32_t>(call.outputs[0], row),
             RowOf<float>(call.outputs[1], row));
    }
  }

 private:
  Candidates InBestGroups(const float* by) const {
    Candidates candidates;
    if (choice_.groups_used == choice_.groups) return candidates.set();
    const int32_t size = static_cast<int32_t>(columns_ / choice_.groups);
    float sums[kMaxExperts];
    for (int32_t g = 0; g < choice_.groups; ++g) {
      Candidates left;
      left.set();
      sums[g] = 0;
      for (int64_t i = 0; i < choice_.group_best; ++i) {
        const int32_t best = Largest(by, g * size, (g + 1) * size, left);
        left[best] = false;
        sums[g] += by[best];
      }
    }
    Candidates left;
    left.set();
    for (int64_t i = 0; i < choice_.groups_used; ++i) {
      const int32_t best =
          Largest(sums, 0, static_cast<int32_t>(choice_.groups), left);
      left[best] = false;
      for (int32_t e = 0; e < size; ++e) candidates[best * size + e] = true;
    }
    return candidates;
  }

  // The largest of `by`, and what they are in x.
  void Choose(const float* x, const float* by, int32_t* ids, float* p) const {
    Candidates candidates = InBestGroups(by);
    float sum = 0;
    for (int64_t i = 0; i < choice_.k; ++i) {
      const int32_t best =
          Largest(by, 0, static_cast<int32_t>(columns_), candidates);
      p[i] = choice_.margin > 0
                 ? MixerShare(x, columns_, candidates, best, choice_.margin)
                 : x[best];
      candidates[best] = false;
      ids[i] = best;
      sum += p[i];
    }
    if (!choice_.normalize) return;
    sum = std::max(sum, static_cast<float>(choice_.least_sum));
    for (int64_t i = 0; i < choice_.k; ++i) p[i] /= sum;
  }

  const TopKAttributes choice_;
  const int64_t columns_;
  const bool biased_;
};

class TopKRow : public KernelEntry {
 public:
  TopKRow() : KernelEntry("top_k_any_row", "top_k", Isa::kRef, "", "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<TopKNode>(view);
  }
};

}  // namespace

void AddTopKKernels(KernelEntries* rows) {
  rows->push_back(std::make_unique<TopKRow>());
}

}  // namespace weft
