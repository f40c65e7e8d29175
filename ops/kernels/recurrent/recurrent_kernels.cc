#include "ops/kernels/recurrent/recurrent_kernels.h"

#include "absl/strings/str_cat.h"
#include "ops/kernels/recurrent/recurrent.h"
#include "ops/ops.h"

namespace weft {
namespace {

RecurrentRows Rows(const Operand& x) {
  return {static_cast<const float*>(x.data), x.row_bytes};
}

const float* Numbers(const Operand& x) {
  return static_cast<const float*>(x.data);
}

// A node of the family: operand 0 is its state, result 1 its rows. Node classes
// say what the other operands are.
template <class Args>
class RecurrentNode : public Kernel {
 public:
  int64_t Items(const KernelCall& call, int) const override {
    const int32_t* slots =
        static_cast<const int32_t*>(call.inputs[indices_ + 1].data);
    int64_t runs = 1;
    for (int64_t row = 1; row < call.outputs[1].rows; ++row) {
      runs += slots[row] != slots[row - 1];
    }
    return runs * parts_;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    Args args = sizes_;
    args.run.state = call.inputs[0].state;
    args.run.positions =
        static_cast<const int32_t*>(call.inputs[indices_].data);
    args.run.slots =
        static_cast<const int32_t*>(call.inputs[indices_ + 1].data);
    args.run.rows = call.outputs[1].rows;
    args.run.y = static_cast<float*>(call.outputs[1].data);
    args.run.y_row_bytes = call.outputs[1].row_bytes;
    SetOperands(call, &args);
    run_(args, begin, end);
  }

 protected:
  // `indices`: the operand that positions are; sequence is behind it. `parts`:
  // work items of a run.
  RecurrentNode(const Args& sizes, int indices, int64_t parts,
                RecurrentFunction<Args> run)
      : sizes_(sizes), indices_(indices), parts_(parts), run_(run) {}

  virtual void SetOperands(const KernelCall& call, Args* args) const = 0;

 private:
  const Args sizes_;
  const int indices_;
  const int64_t parts_;
  const RecurrentFunction<Args> run_;
};

int64_t PanelsOf(const ValueType& state) {
  return state.shape[0].value *
         ((state.shape[2].value + kMatrixPanel - 1) / kMatrixPanel);
}

class ShortConvNode : public RecurrentNode<ShortConvArgs> {
 public:
  ShortConvNode(const NodeView& view,
                const RecurrentKernel<ShortConvArgs>& kernel)
      : RecurrentNode(
            SizesOf(view), 3,
            (view.input(0).type.shape[1].value + kShortConvColumns - 1) /
                kShortConvColumns,
            kernel.run),
        has_bias_(view.node.inputs.size() > 5) {}

 protected:
  void SetOperands(const KernelCall& call, ShortConvArgs* args) const override {
    args->x = Rows(call.inputs[1]);
    args->taps = Numbers(call.inputs[2]);
    if (has_bias_) args->bias = Numbers(call.inputs[5]);
  }

 private:
  static ShortConvArgs SizesOf(const NodeView& view) {
    ShortConvArgs args = {};
    args.window = view.input(0).type.shape[0].value;
    args.columns = view.input(0).type.shape[1].value;
    args.silu = view.node.attributes.As<ShortConvAttributes>().activation ==
                ConvActivation::kSilu;
    return args;
  }

  const bool has_bias_;
};

class DeltaRuleNode : public RecurrentNode<DeltaRuleArgs> {
 public:
  DeltaRuleNode(const NodeView& view,
                const RecurrentKernel<DeltaRuleArgs>& kernel)
      : RecurrentNode(SizesOf(view), 6, PanelsOf(view.input(0).type),
                      kernel.run) {}

 protected:
  void SetOperands(const KernelCall& call, DeltaRuleArgs* args) const override {
    args->q = Rows(call.inputs[1]);
    args->k = Rows(call.inputs[2]);
    args->v = Rows(call.inputs[3]);
    args->decay = Rows(call.inputs[4]);
    args->beta = Rows(call.inputs[5]);
  }

 private:
  static DeltaRuleArgs SizesOf(const NodeView& view) {
    const Shape& state = view.input(0).type.shape;
    const auto a = view.node.attributes.As<DeltaRuleAttributes>();
    DeltaRuleArgs args = {};
    args.heads = state[0].value;
    args.keys = state[1].value;
    args.values = state[2].value;
    args.key_heads = view.input(1).type.shape[1].value / args.keys;
    args.tiled = a.key_heads == HeadOrder::kTiled;
    args.by_key = view.input(4).type.shape[1].value > args.heads;
    args.scale = static_cast<float>(a.scale);
    return args;
  }
};

class SelectiveScanNode : public RecurrentNode<SelectiveScanArgs> {
 public:
  SelectiveScanNode(const NodeView& view,
                    const RecurrentKernel<SelectiveScanArgs>& kernel)
      : RecurrentNode(SizesOf(view), 7, PanelsOf(view.input(0).type),
                      kernel.run) {}

 protected:
  void SetOperands(const KernelCall& call,
                   SelectiveScanArgs* args) const override {
    args->x = Rows(call.inputs[1]);
    args->b = Rows(call.inputs[2]);
    args->c = Rows(call.inputs[3]);
    args->dt = Rows(call.inputs[4]);
    args->a = Numbers(call.inputs[5]);
    args->d = Numbers(call.inputs[6]);
  }

 private:
  static SelectiveScanArgs SizesOf(const NodeView& view) {
    const Shape& state = view.input(0).type.shape;
    SelectiveScanArgs args = {};
    args.heads = state[0].value;
    args.keys = state[1].value;
    args.values = state[2].value;
    args.groups = view.input(2).type.shape[1].value / args.keys;
    args.by_value = view.input(5).type.shape.rank() == 2;
    return args;
  }
};

const RecurrentKernels* KernelsOf(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return &kRecurrentKernelsAvx512;
  if (isa == Isa::kAvx2) return &kRecurrentKernelsAvx2;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return &kRecurrentKernelsNeon;
#endif
  (void)isa;
  return nullptr;
}

// One line of the family's lists. All sum alike, whatever the instruction set.
template <class Node, class Args>
class Row : public KernelEntry {
 public:
  Row(const RecurrentKernel<Args>& kernel, Isa isa)
      : KernelEntry(absl::StrCat(kernel.op, "_f32_", Name(isa)), kernel.op, isa,
                    "", "lanes"),
        kernel_(kernel) {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<Node>(view, kernel_);
  }

 private:
  const RecurrentKernel<Args>& kernel_;
};

template <class Node, class Args>
void AddLines(const KernelList<RecurrentKernel<Args>>& lines, Isa isa,
              KernelEntries* rows) {
  for (const RecurrentKernel<Args>& line : lines) {
    rows->push_back(std::make_unique<Row<Node, Args>>(line, isa));
  }
}

}  // namespace

void AddRecurrentKernels(KernelEntries* rows) {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    const RecurrentKernels* kernels = KernelsOf(isa);
    if (kernels == nullptr) continue;
    AddLines<ShortConvNode>(kernels->short_conv, isa, rows);
    AddLines<DeltaRuleNode>(kernels->delta_rule, isa, rows);
    AddLines<SelectiveScanNode>(kernels->selective_scan, isa, rows);
  }
}

}  // namespace weft
