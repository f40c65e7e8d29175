// Products with the experts that rows have chosen, by the kernels of the matmul
// family.
//
//   phase 0  sort the (row, expert) pairs by expert; one thread
//   phase 1  copy the operands of each expert's pairs together
//   phase 2  per expert that was chosen, one product of all its rows; the
//            epilogue stores each where it belongs (MatmulArgs::places)
//
// So a matrix is read once in a step, and not at all when nobody chose it. A
// call may leave experts out (KernelCall::experts), and others that take them
// together make the same result: what rows have of one expert depends on no
// other, nor on how many are there. An
// element is summed by the same loop in the same order whatever else is in the
// step. Work items of phase 2 are groups of panels, of all chosen experts in
// turn: any share of the items has its part of the popular experts and of the
// others.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/experts.h"
#include "ops/kernels/experts/expert_kernels.h"
#include "ops/kernels/matmul/part_matmul.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Bytes of a row of x: rounded (quantized_rows.h), or floats.
int64_t OperandRowBytes(int64_t depth, bool quantized) {
  return quantized ? depth / 32 * kQuantizedRowsBlockBytes : depth * 4;
}

// What phase 0 leaves for the others, in shared scratch.
struct Groups {
  int32_t* chosen_count;  // experts that somebody chose, but for those left out
  int32_t* chosen;        // [experts], in order
  int32_t* first;         // [experts + 1], where an expert's pairs begin
  int32_t* next;          // [experts], while sorting
  int32_t* places;        // [pairs]: row * used + which of its experts
  uint8_t* x;             // operands in order of places

  Groups(uint8_t* scratch, int64_t experts, int64_t pairs) {
    chosen_count = reinterpret_cast<int32_t*>(scratch);
    chosen = chosen_count + 1;
    first = chosen + experts;
    next = first + experts + 1;
    places = next + experts;
    x = scratch + IndexBytes(experts, pairs);
  }

  static int64_t IndexBytes(int64_t experts, int64_t pairs) {
    return RoundUp((2 + 3 * experts + pairs) * int64_t{sizeof(int32_t)}, 64);
  }
};

void CopyQuantizedRow(const Operand& x, int64_t row, int64_t first_block,
                      uint8_t* to, int64_t to_rows, int64_t depth,
                      int64_t to_row) {
  for (int64_t b = 0; b < depth / 32; ++b) {
    const QuantizedBlock source =
        QuantizedBlockAt(x.data, x.rows, x.columns, row, first_block + b);
    const QuantizedBlock copy = QuantizedBlockAt(to, to_rows, depth, to_row, b);
    std::memcpy(copy.q, source.q, 32);
    *copy.scale = *source.scale;
    *copy.scaled_sum = *source.scaled_sum;
    *copy.sum_low = *source.sum_low;
    *copy.sum_high = *source.sum_high;
  }
}

class ExpertMatmulNode : public Kernel {
 public:
  ExpertMatmulNode(const NodeView& view, const MatmulTiles& tiles)
      : parts_(ExpertPartsOf(view.graph, view.node)),
        tiles_(tiles),
        quantized_(view.input(0).type.dtype == DType::kQ8Rows),
        depth_(view.input(1).type.shape[1].value),
        panels_((parts_.weight_rows + kPanelRows - 1) / kPanelRows),
        panels_per_item_(parts_.epilogue == MatmulEpilogue::kGateQuantize ? 4
                                                                          : 2),
        expert_bytes_(FindWeightLayout(view.input(1).type.layout)
                          ->bytes(view.input(1).type.dtype, parts_.weight_rows,
                                  depth_)) {}

  int phases() const override { return 3; }

  int64_t Items(const KernelCall& call, int phase) const override {
    if (phase == 0) return 1;
    if (phase == 1) return Pairs(call);
    return *GroupsOf(call).chosen_count * ItemsPerExpert();
  }

  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    if (phase == 0) {
      Sort(call);
    } else if (phase == 1) {
      Gather(call, begin, end);
    } else {
      Multiply(call, begin, end);
    }
  }

 private:
  int64_t Pairs(const KernelCall& call) const {
    return call.inputs[0].rows * parts_.used;
  }
  Groups GroupsOf(const KernelCall& call) const {
    return Groups(call.scratch, parts_.experts, Pairs(call));
  }
  static bool LeftOut(const KernelCall& call, int64_t expert) {
    return call.experts != nullptr && call.experts[expert] == nullptr;
  }
  int64_t ItemsPerExpert() const {
    return (panels_ + panels_per_item_ - 1) / panels_per_item_;
  }

  void Sort(const KernelCall& call) const {
    const Groups groups = GroupsOf(call);
    const int32_t* ids = static_cast<const int32_t*>(call.inputs[2].data);
    const int64_t pairs = Pairs(call);
    std::fill(groups.first, groups.first + parts_.experts + 1, 0);
    for (int64_t i = 0; i < pairs; ++i) ++groups.first[ids[i] + 1];
    *groups.chosen_count = 0;
    for (int32_t e = 0; e < parts_.experts; ++e) {
      if (groups.first[e + 1] > 0 && !LeftOut(call, e)) {
        groups.chosen[(*groups.chosen_count)++] = e;
      }
      groups.first[e + 1] += groups.first[e];
      groups.next[e] = groups.first[e];
    }
    for (int64_t i = 0; i < pairs; ++i) {
      groups.places[groups.next[ids[i]]++] = static_cast<int32_t>(i);
    }
  }

  // Operands begin .. end - 1, in order of places.
  void Gather(const KernelCall& call, int64_t begin, int64_t end) const {
    const Groups groups = GroupsOf(call);
    const Operand& x = call.inputs[0];
    const int64_t row_bytes = OperandRowBytes(depth_, quantized_);
    int64_t expert =
        std::upper_bound(groups.first, groups.first + parts_.experts + 1,
                         static_cast<int32_t>(begin)) -
        groups.first - 1;
    for (int64_t i = begin; i < end; ++i) {
      while (i >= groups.first[expert + 1]) ++expert;
      if (LeftOut(call, expert)) continue;
      const int64_t row = groups.places[i] / parts_.used;
      const int64_t part = parts_.shared ? 0 : groups.places[i] % parts_.used;
      const int64_t first = groups.first[expert];
      if (quantized_) {
        CopyQuantizedRow(x, row, part * (depth_ / 32),
                         groups.x + first * row_bytes,
                         groups.first[expert + 1] - first, depth_, i - first);
      } else {
        std::memcpy(groups.x + i * row_bytes,
                    static_cast<const uint8_t*>(x.data) + row * x.row_bytes +
                        part * row_bytes,
                    row_bytes);
      }
    }
  }

  void Multiply(const KernelCall& call, int64_t begin, int64_t end) const {
    const Groups groups = GroupsOf(call);
    const int64_t chosen = *groups.chosen_count;
    // Item i is the (i / chosen)th group of panels of chosen expert i % chosen.
    for (int64_t i = 0; i < chosen; ++i) {
      const int64_t first = (begin - i + chosen - 1) / chosen;
      const int64_t last = (end - i + chosen - 1) / chosen;
      if (first < last) {
        MultiplyExpert(call, groups, groups.chosen[i], first * panels_per_item_,
                       std::min(last * panels_per_item_, panels_));
      }
    }
  }

  void MultiplyExpert(const KernelCall& call, const Groups& groups,
                      int64_t expert, int64_t panel_begin,
                      int64_t panel_end) const {
    const Operand& weight = call.inputs[1];
    const Operand& y = call.outputs[0];
    const int64_t first = groups.first[expert];
    const int64_t row_bytes = OperandRowBytes(depth_, quantized_);
    MatmulArgs args = {};
    args.x = groups.x + first * row_bytes;
    args.x_row_bytes = row_bytes;
    args.rows = groups.first[expert + 1] - first;
    args.depth = depth_;
    args.weight =
        call.experts != nullptr
            ? call.experts[expert]
            : static_cast<const uint8_t*>(weight.data) + expert * expert_bytes_;
    args.weight_rows = parts_.weight_rows;
    if (parts_.bias) {
      args.bias = static_cast<const float*>(call.inputs[3].data) +
                  expert * parts_.weight_rows;
    }
    args.epilogue = parts_.epilogue;
    args.activation = parts_.gate.activation;
    args.limit = static_cast<float>(parts_.gate.limit);
    args.slope = static_cast<float>(parts_.gate.slope);
    args.places = groups.places + first;
    args.parts = parts_.used;
    args.result_rows = y.rows;
    if (parts_.epilogue == MatmulEpilogue::kGateQuantize) {
      args.quantized = static_cast<uint8_t*>(y.data);
    } else {
      args.y = static_cast<float*>(y.data);
      args.y_row_bytes = parts_.columns * 4;
    }
    tiles_.For(args.rows).run(args, panel_begin, panel_end,
                              call.thread_scratch);
  }

  const ExpertParts parts_;
  const MatmulTiles& tiles_;
  const bool quantized_;
  const int64_t depth_;
  const int64_t panels_;
  const int64_t panels_per_item_;
  const int64_t expert_bytes_;
};

class ExpertMatmulRow : public PartMatmulRow {
 public:
  ExpertMatmulRow(MatmulTiles tiles, bool quantized)
      : PartMatmulRow("expert", std::move(tiles), quantized) {}

  bool Computes(const Node& node) const override {
    return IsExpertMatmul(node);
  }

  bool takes_experts_apart() const override { return true; }

  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<ExpertMatmulNode>(view, tiles());
  }

  int64_t ScratchBytes(const NodeView& view) const override {
    const ExpertParts parts = ExpertPartsOf(view.graph, view.node);
    const int64_t pairs =
        view.input(0).type.shape[0].Resolve(view.graph.bounds) * parts.used;
    return Groups::IndexBytes(parts.experts, pairs) +
           pairs *
               OperandRowBytes(view.input(1).type.shape[1].value, quantized());
  }

 protected:
  int64_t PartRows(const NodeView& view) const override {
    return ExpertPartsOf(view.graph, view.node).weight_rows;
  }
};

}  // namespace

void AddExpertMatmulKernels(KernelEntries* rows) {
  ForEachPartMatmul([rows](MatmulTiles tiles, bool quantized) {
    rows->push_back(
        std::make_unique<ExpertMatmulRow>(std::move(tiles), quantized));
  });
}

void AddExpertKernels(KernelEntries* rows) {
  AddTopKKernels(rows);
  AddExpertRowsKernels(rows);
  AddExpertMatmulKernels(rows);
}

}  // namespace weft
