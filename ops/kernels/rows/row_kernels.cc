#include "ops/kernels/rows/row_kernels.h"

#include "absl/strings/str_cat.h"
#include "ops/lora.h"
#include "ops/norm.h"
#include "ops/ops.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

ConstRows Rows(const Operand& x) {
  return {static_cast<const float*>(x.data), x.row_bytes};
}

MutableRows Out(const Operand& y) {
  return {static_cast<float*>(y.data), y.row_bytes};
}

// A node whose work items are the rows of operand 0.
class RowNode : public Kernel {
 public:
  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows;
  }
};

// The one number among a node's attributes; 0 where there is none.
float ParameterOf(const Node& node) {
  double parameter = 0;
  node.attributes.ForEach([&](absl::string_view, const AttributeValue& value) {
    if (const double* number = std::get_if<double>(&value)) parameter = *number;
  });
  return static_cast<float>(parameter);
}

class NormNode : public RowNode {
 public:
  NormNode(const NodeView& view, const RowKernel<NormArgs>& kernel)
      : eps_(static_cast<float>(NormAttributesOf(view.node.attributes).eps)),
        quantize_(view.output(0).type.dtype == DType::kQ8Rows),
        heads_(NormAttributesOf(view.node.attributes).heads),
        weight_(view.node.inputs.size() > 1),
        gated_(view.node.Is(kRmsNormGateOp)),
        bias_(view.node.inputs.size() > 2 && !gated_),
        run_(kernel.run) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    NormArgs args = {};
    args.x = Rows(call.inputs[0]);
    args.heads = heads_;
    args.columns = call.inputs[0].columns / heads_;
    if (weight_) args.weight = static_cast<const float*>(call.inputs[1].data);
    if (gated_) args.gate = Rows(call.inputs[2]);
    if (bias_) args.bias = static_cast<const float*>(call.inputs[2].data);
    if (weight_ && call.inputs[1].columns > args.columns) {
      args.weight_step = args.columns;
    }
    args.epsilon = eps_;
    args.rows = call.inputs[0].rows;
    if (quantize_) {
      args.quantized = static_cast<uint8_t*>(call.outputs[0].data);
    } else {
      args.y = Out(call.outputs[0]);
    }
    run_(args, begin, end);
  }

 private:
  float eps_;
  bool quantize_;
  int64_t heads_;
  bool weight_, gated_, bias_;
  RowFunction<NormArgs> run_;
};

class QuantizeNode : public RowNode {
 public:
  QuantizeNode(const NodeView&, const RowKernel<QuantizeRowsArgs>& kernel)
      : run_(kernel.run) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), call.inputs[0].columns, call.inputs[0].rows,
          static_cast<uint8_t*>(call.outputs[0].data)},
         begin, end);
  }

 private:
  RowFunction<QuantizeRowsArgs> run_;
};

class BinaryNode : public RowNode {
 public:
  BinaryNode(const NodeView& view, const RowKernel<BinaryArgs>& kernel)
      : repeats_(view.input(1).type.shape.rank() == 1), run_(kernel.run) {
    if (view.node.attributes.Are<ClampedGateAttributes>()) {
      clamp_ = view.node.attributes.As<ClampedGateAttributes>();
    }
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    ConstRows b = Rows(call.inputs[1]);
    if (repeats_) b.row_bytes = 0;
    run_({Rows(call.inputs[0]), b, call.inputs[0].columns, Out(call.outputs[0]),
          static_cast<float>(clamp_.limit), static_cast<float>(clamp_.slope)},
         begin, end);
  }

 private:
  bool repeats_;
  ClampedGateAttributes clamp_;
  RowFunction<BinaryArgs> run_;
};

class UnaryNode : public RowNode {
 public:
  template <class Line>
  UnaryNode(const NodeView& view, const Line& kernel)
      : parameter_(ParameterOf(view.node)), run_(kernel.run) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), call.inputs[0].columns, Out(call.outputs[0]),
          parameter_},
         begin, end);
  }

 private:
  float parameter_;
  RowFunction<UnaryArgs> run_;
};

// An operand's row holds all dimensions but the first; what is normalised is
// the last one.
class SoftmaxNode : public Kernel {
 public:
  SoftmaxNode(const NodeView& view, const RowKernel<UnaryArgs>& kernel)
      : sinks_(view.node.inputs.size() > 1), run_(kernel.run) {
    const Shape& shape = view.input(0).type.shape;
    for (int i = 1; i + 1 < shape.rank(); ++i) parts_ *= shape[i].value;
  }

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows * parts_;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const int64_t columns = call.inputs[0].columns / parts_;
    UnaryArgs args = {
        {static_cast<const float*>(call.inputs[0].data), columns * 4},
        columns,
        {static_cast<float*>(call.outputs[0].data), columns * 4}};
    if (sinks_) args.sinks = static_cast<const float*>(call.inputs[1].data);
    args.heads = parts_;
    run_(args, begin, end);
  }

 private:
  const bool sinks_;
  RowFunction<UnaryArgs> run_;
  int64_t parts_ = 1;
};

class WeightedSumNode : public RowNode {
 public:
  WeightedSumNode(const NodeView&, const RowKernel<WeightedSumArgs>& kernel)
      : run_(kernel.run) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), Rows(call.inputs[1]), call.inputs[1].columns,
          call.outputs[0].columns, Out(call.outputs[0])},
         begin, end);
  }

 private:
  RowFunction<WeightedSumArgs> run_;
};

class TakeRowsNode : public Kernel {
 public:
  TakeRowsNode(const NodeView&, const RowKernel<TakeRowsArgs>& kernel)
      : run_(kernel.run) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.outputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const Operand& x = call.inputs[0];
    run_({static_cast<const uint8_t*>(x.data), x.row_bytes,
          static_cast<const int32_t*>(call.inputs[1].data), x.columns * 4,
          static_cast<uint8_t*>(call.outputs[0].data),
          call.outputs[0].row_bytes},
         begin, end);
  }

 private:
  RowFunction<TakeRowsArgs> run_;
};

RopeArgs RopeArgsOf(const Node& node) {
  RopeArgs args = {};
  const auto rope = node.attributes.As<RopeAttributes>();
  args.head_dim = rope.head_dim;
  args.rope_dims = rope.rope_dims;
  args.halves = rope.style == RopeStyle::kHalves;
  args.frequency_base = rope.base;
  args.frequency_scale = rope.scale;
  args.ramp_begin = rope.ramp_begin;
  args.ramp_end = rope.ramp_end;
  args.magnitude = static_cast<float>(rope.magnitude);
  return args;
}

class RopeNode : public RowNode {
 public:
  RopeNode(const NodeView& view, const RowKernel<RopeArgs>& kernel)
      : args_(RopeArgsOf(view.node)),
        has_factors_(view.node.inputs.size() > 2),
        run_(kernel.run) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    RopeArgs args = args_;
    args.x = Rows(call.inputs[0]);
    args.heads = call.inputs[0].columns / args.head_dim;
    args.positions = static_cast<const int32_t*>(call.inputs[1].data);
    if (has_factors_) {
      args.factors = static_cast<const float*>(call.inputs[2].data);
    }
    args.y = Out(call.outputs[0]);
    run_(args, begin, end);
  }

 private:
  RopeArgs args_;
  bool has_factors_;
  RowFunction<RopeArgs> run_;
};

KvWriteArgs WriteArgsOf(const NodeView& view) {
  const ValueType& state = view.input(0).type;
  KvWriteArgs args = {};
  args.heads = state.shape[1].value;
  args.head_dim = state.shape[2].value;
  args.keys = state.layout == "keys";
  return args;
}

void SetOperands(const KernelCall& call, KvWriteArgs* args) {
  args->x = Rows(call.inputs[1]);
  args->state = call.inputs[0].state;
  args->positions = static_cast<const int32_t*>(call.inputs[2].data);
  args->slots = static_cast<const int32_t*>(call.inputs[3].data);
}

class KvWriteNode : public Kernel {
 public:
  KvWriteNode(const NodeView& view, const CacheKernel<KvWriteArgs>& kernel)
      : args_(WriteArgsOf(view)), run_(kernel.run) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[1].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    KvWriteArgs args = args_;
    SetOperands(call, &args);
    run_(args, begin, end);
  }

 private:
  const KvWriteArgs args_;
  RowFunction<KvWriteArgs> run_;
};

class RopeKvWriteNode : public Kernel {
 public:
  RopeKvWriteNode(const NodeView& view,
                  const CacheKernel<RopeKvWriteArgs>& kernel)
      : args_({RopeArgsOf(view.node), WriteArgsOf(view)}),
        has_factors_(view.node.inputs.size() > 4),
        run_(kernel.run) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[1].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    RopeKvWriteArgs args = args_;
    SetOperands(call, &args.write);
    args.rope.x = args.write.x;
    args.rope.heads = args.write.heads;
    args.rope.positions = args.write.positions;
    if (has_factors_) {
      args.rope.factors = static_cast<const float*>(call.inputs[4].data);
    }
    run_(args, begin, end);
  }

 private:
  const RopeKvWriteArgs args_;
  const bool has_factors_;
  RowFunction<RopeKvWriteArgs> run_;
};

// What stands in a kernel's name between op and instruction set, and why it
// refuses a node.
template <class Args>
std::string TypeOf(const RowKernel<Args>&) {
  return "f32";
}
template <class Args>
std::string WhyNotFor(const NodeView&, const RowKernel<Args>&) {
  return "";
}

std::string TypeOf(const GeluKernel& kernel) {
  return kernel.tanh ? "tanh_f32" : "none_f32";
}
std::string WhyNotFor(const NodeView& view, const GeluKernel& kernel) {
  const auto gelu = view.node.attributes.As<GeluAttributes>();
  return (gelu.approximation == GeluApproximation::kTanh) == kernel.tanh
             ? ""
             : "is for the other approximation";
}

template <class Args>
std::string TypeOf(const CacheKernel<Args>& kernel) {
  return Info(DTypeOf(kernel.type)).name;
}
template <class Args>
std::string WhyNotFor(const NodeView& view, const CacheKernel<Args>& kernel) {
  const DType type = DTypeOf(kernel.type);
  return view.input(0).type.dtype == type
             ? ""
             : absl::StrCat("writes a cache of ", Info(type).name);
}

// One line of the family's lists.
template <class Node, class Line>
class RowWiseRow : public KernelEntry {
 public:
  RowWiseRow(const Line& kernel, Isa isa)
      : KernelEntry(
            absl::StrCat(kernel.op, "_", TypeOf(kernel), "_", Name(isa)),
            kernel.op, isa, "", "lanes"),
        kernel_(kernel) {}

  std::string Refuses(const NodeView& view) const override {
    return WhyNotFor(view, kernel_);
  }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<Node>(view, kernel_);
  }

 private:
  const Line& kernel_;
};

template <class Node, class Line>
void AddLines(const KernelList<Line>& lines, Isa isa, KernelEntries* rows) {
  for (const Line& line : lines) {
    rows->push_back(std::make_unique<RowWiseRow<Node, Line>>(line, isa));
  }
}

class LoraNode : public Kernel {
 public:
  LoraNode(const NodeView& view, const LoraKernel& kernel) : kernel_(kernel) {
    const std::vector<int64_t> ranks =
        *ParseLoraRanks(view.node.attributes.As<LoraAddAttributes>().ranks);
    for (size_t i = 0; i < ranks.size(); ++i) {
      adapter_of_.insert(adapter_of_.end(), ranks[i], static_cast<int32_t>(i));
    }
  }

  int phases() const override { return 2; }
  int64_t Items(const KernelCall& call, int phase) const override {
    const int64_t rows = call.inputs[0].rows;
    return phase == 0 ? rows * static_cast<int64_t>(adapter_of_.size())
                      : rows * ((call.inputs[0].columns + kLoraColumns - 1) /
                                kLoraColumns);
  }
  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    LoraArgs args = {};
    args.y = Rows(call.inputs[0]);
    args.x = Rows(call.inputs[1]);
    args.inputs = call.inputs[1].columns;
    args.outputs = call.inputs[0].columns;
    args.a = static_cast<const float*>(call.inputs[2].data);
    args.b = static_cast<const float*>(call.inputs[3].data);
    args.scales = Rows(call.inputs[4]);
    args.adapter_of = adapter_of_.data();
    args.rank = static_cast<int64_t>(adapter_of_.size());
    args.products = reinterpret_cast<float*>(call.scratch);
    args.sum = Out(call.outputs[0]);
    (phase == 0 ? kernel_.down : kernel_.up)(args, begin, end);
  }

 private:
  const LoraKernel& kernel_;
  std::vector<int32_t> adapter_of_;
};

class LoraRow : public KernelEntry {
 public:
  LoraRow(const LoraKernel& kernel, Isa isa)
      : KernelEntry(absl::StrCat(kernel.op, "_f32_", Name(isa)), kernel.op, isa,
                    "", "lanes"),
        kernel_(kernel) {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<LoraNode>(view, kernel_);
  }
  int64_t ScratchBytes(const NodeView& view) const override {
    const Shape& a = view.input(2).type.shape;
    const int64_t rows = view.input(0).type.shape[0].Resolve(view.graph.bounds);
    return CappedProduct(rows, a[0].value * int64_t{sizeof(float)});
  }

 private:
  const LoraKernel& kernel_;
};

// Rows of the table are read through their layout, whatever it is.
class EmbedNode : public Kernel {
 public:
  explicit EmbedNode(const NodeView& view)
      : dtype_(view.input(1).type.dtype),
        layout_(FindWeightLayout(view.input(1).type.layout)) {}

  int64_t Items(const KernelCall& call, int) const override {
    return call.outputs[0].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const Operand& table = call.inputs[1];
    const Operand& y = call.outputs[0];
    const int32_t* ids = static_cast<const int32_t*>(call.inputs[0].data);
    for (int64_t t = begin; t < end; ++t) {
      layout_->read_row(dtype_, table.rows, table.columns,
                        static_cast<const uint8_t*>(table.data), ids[t],
                        reinterpret_cast<float*>(static_cast<uint8_t*>(y.data) +
                                                 t * y.row_bytes));
    }
  }

 private:
  DType dtype_;
  const WeightLayout* layout_;
};

class EmbedRow : public KernelEntry {
 public:
  EmbedRow() : KernelEntry("embed_any_row", "embed", Isa::kRef, "", "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<EmbedNode>(view);
  }
};

}  // namespace

const RowKernels* RowKernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (Includes(isa, Isa::kAvx512)) return &kRowKernelsAvx512;
  if (Includes(isa, Isa::kAvx2)) return &kRowKernelsAvx2;
#elif defined(__aarch64__)
  if (Includes(isa, Isa::kNeon)) return &kRowKernelsNeon;
#endif
  (void)isa;
  return nullptr;
}

RowFunction<NormArgs> NormFunctionFor(absl::string_view op, Isa isa) {
  const RowKernels* kernels = RowKernelsFor(isa);
  if (kernels == nullptr) return nullptr;
  for (const RowKernel<NormArgs>& kernel : kernels->norm) {
    if (op == kernel.op) return kernel.run;
  }
  return nullptr;
}

void AddRowKernels(KernelEntries* rows) {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    const RowKernels* kernels = RowKernelsFor(isa);
    if (kernels == nullptr) continue;
    AddLines<NormNode>(kernels->norm, isa, rows);
    AddLines<QuantizeNode>(kernels->quantize, isa, rows);
    AddLines<BinaryNode>(kernels->binary, isa, rows);
    AddLines<UnaryNode>(kernels->unary, isa, rows);
    AddLines<UnaryNode>(kernels->gelu, isa, rows);
    AddLines<SoftmaxNode>(kernels->softmax, isa, rows);
    AddLines<WeightedSumNode>(kernels->weighted_sum, isa, rows);
    AddLines<TakeRowsNode>(kernels->take_rows, isa, rows);
    AddLines<RopeNode>(kernels->rope, isa, rows);
    AddLines<KvWriteNode>(kernels->kv_write, isa, rows);
    AddLines<RopeKvWriteNode>(kernels->rope_kv_write, isa, rows);
    for (const LoraKernel& line : kernels->lora) {
      rows->push_back(std::make_unique<LoraRow>(line, isa));
    }
  }
  rows->push_back(std::make_unique<EmbedRow>());
}

}  // namespace weft
