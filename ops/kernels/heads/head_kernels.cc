// head_matmul by the kernels of the matmul family, head after head, and
// concat_heads, which copies.
//
// A head's columns of f32 are multiplied where they stand. Rounded rows lie in
// tiles that know how wide they are (quantized_rows.h), so a phase before
// copies each head's blocks together. An element is summed by the same loop in
// the same order whatever else is in the step.
#include "ops/kernels/heads/head_kernels.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/heads.h"
#include "ops/kernels/matmul/part_matmul.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/ops.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

int64_t QuantizedRowBytes(int64_t depth) {
  return depth / 32 * kQuantizedRowsBlockBytes;
}

class HeadMatmulNode : public Kernel {
 public:
  HeadMatmulNode(const NodeView& view, const MatmulTiles& tiles)
      : parts_(HeadPartsOf(view.graph, view.node)),
        tiles_(tiles),
        quantized_(view.input(0).type.dtype == DType::kQ8Rows),
        panels_((parts_.weight_rows + kPanelRows - 1) / kPanelRows),
        head_bytes_(FindWeightLayout(view.input(1).type.layout)
                        ->bytes(view.input(1).type.dtype, parts_.weight_rows,
                                parts_.depth)) {}

  int phases() const override { return quantized_ ? 2 : 1; }

  int64_t Items(const KernelCall& call, int phase) const override {
    return phase + 1 < phases() ? parts_.heads * call.inputs[0].rows
                                : parts_.heads * ItemsPerHead();
  }

  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    if (phase + 1 < phases()) return Gather(call, begin, end);
    while (begin < end) {
      const int64_t head = begin / ItemsPerHead();
      const int64_t first = begin - head * ItemsPerHead();
      const int64_t last = std::min(ItemsPerHead(), first + end - begin);
      Multiply(call, head, first * kItemPanels,
               std::min(last * kItemPanels, panels_));
      begin += last - first;
    }
  }

 private:
  static constexpr int64_t kItemPanels = 4;

  int64_t ItemsPerHead() const {
    return (panels_ + kItemPanels - 1) / kItemPanels;
  }

  // Row begin % rows of head begin / rows, and so on.
  void Gather(const KernelCall& call, int64_t begin, int64_t end) const {
    const Operand& x = call.inputs[0];
    const int64_t blocks = parts_.depth / 32;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / x.rows, row = i % x.rows;
      uint8_t* to =
          call.scratch + head * x.rows * QuantizedRowBytes(parts_.depth);
      for (int64_t b = 0; b < blocks; ++b) {
        CopyQuantizedBlock(
            QuantizedBlockAt(x.data, x.rows, x.columns, row, head * blocks + b),
            QuantizedBlockAt(to, x.rows, parts_.depth, row, b));
      }
    }
  }

  void Multiply(const KernelCall& call, int64_t head, int64_t panel_begin,
                int64_t panel_end) const {
    const Operand& x = call.inputs[0];
    const Operand& y = call.outputs[0];
    MatmulArgs args = {};
    if (quantized_) {
      args.x_row_bytes = QuantizedRowBytes(parts_.depth);
      args.x = call.scratch + head * x.rows * args.x_row_bytes;
    } else {
      args.x = static_cast<const float*>(x.data) + head * parts_.depth;
      args.x_row_bytes = x.row_bytes;
    }
    args.rows = x.rows;
    args.depth = parts_.depth;
    args.weight =
        static_cast<const uint8_t*>(call.inputs[1].data) + head * head_bytes_;
    args.weight_rows = parts_.weight_rows;
    args.epilogue = MatmulEpilogue::kStore;
    args.y = static_cast<float*>(y.data) + head * parts_.weight_rows;
    args.y_row_bytes = y.row_bytes;
    tiles_.For(args.rows).run(args, panel_begin, panel_end,
                              call.thread_scratch);
  }

  const HeadParts parts_;
  const MatmulTiles& tiles_;
  const bool quantized_;
  const int64_t panels_;
  const int64_t head_bytes_;
};

class HeadMatmulRow : public PartMatmulRow {
 public:
  HeadMatmulRow(MatmulTiles tiles, bool quantized)
      : PartMatmulRow("head", std::move(tiles), quantized) {}

  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<HeadMatmulNode>(view, tiles());
  }

  int64_t ScratchBytes(const NodeView& view) const override {
    if (!quantized()) return 0;
    const HeadParts parts = HeadPartsOf(view.graph, view.node);
    return view.input(0).type.shape[0].Resolve(view.graph.bounds) *
           parts.heads * QuantizedRowBytes(parts.depth);
  }

 protected:
  int64_t PartRows(const NodeView& view) const override {
    return HeadPartsOf(view.graph, view.node).weight_rows;
  }
};

class ConcatHeadsNode : public Kernel {
 public:
  explicit ConcatHeadsNode(const NodeView& view)
      : heads_(view.node.attributes.As<HeadAttributes>().heads) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.outputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const auto at = [](const Operand& operand, int64_t row) {
      return static_cast<uint8_t*>(operand.data) + row * operand.row_bytes;
    };
    const int64_t a_bytes = call.inputs[0].columns / heads_ * 4;
    const int64_t b_bytes = call.inputs[1].columns / heads_ * 4;
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* a = at(call.inputs[0], row);
      const uint8_t* b = at(call.inputs[1], row);
      uint8_t* y = at(call.outputs[0], row);
      for (int64_t head = 0; head < heads_; ++head) {
        std::memcpy(y, a + head * a_bytes, a_bytes);
        std::memcpy(y + a_bytes, b + head * b_bytes, b_bytes);
        y += a_bytes + b_bytes;
      }
    }
  }

 private:
  const int64_t heads_;
};

class ConcatHeadsRow : public KernelEntry {
 public:
  ConcatHeadsRow()
      : KernelEntry("concat_heads_any_row", "concat_heads", Isa::kRef, "",
                    "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<ConcatHeadsNode>(view);
  }
};

}  // namespace

void AddHeadKernels(KernelEntries* rows) {
  ForEachPartMatmul([rows](MatmulTiles tiles, bool quantized) {
    rows->push_back(
        std::make_unique<HeadMatmulRow>(std::move(tiles), quantized));
  });
  rows->push_back(std::make_unique<ConcatHeadsRow>());
}

}  // namespace weft
