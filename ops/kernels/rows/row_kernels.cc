#include "ops/kernels/rows/row_kernels.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
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

using NormFunction = void (*)(const NormArgs&, int64_t, int64_t);
using UnaryFunction = void (*)(const UnaryArgs&, int64_t, int64_t);

class NormNode : public RowNode {
 public:
  NormNode(const NodeView& view, const RowKernels& kernels)
      : eps_(static_cast<float>(view.node.attributes.Float("eps"))),
        quantize_(view.output(0).type.dtype == DType::kQ8Rows),
        heads_(view.node.attributes.Int("heads", 1)),
        bias_(view.node.inputs.size() > 2),
        run_(Function(view.node.op, kernels)) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    NormArgs args = {};
    args.x = Rows(call.inputs[0]);
    args.heads = heads_;
    args.columns = call.inputs[0].columns / heads_;
    args.weight = static_cast<const float*>(call.inputs[1].data);
    if (bias_) args.bias = static_cast<const float*>(call.inputs[2].data);
    if (call.inputs[1].columns > args.columns) args.weight_step = args.columns;
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
  static NormFunction Function(const std::string& op,
                               const RowKernels& kernels) {
    if (op == "rms_norm") return kernels.rms_norm;
    if (op == "rms_norm_quantize") return kernels.rms_norm_quantize;
    if (op == "layer_norm") return kernels.layer_norm;
    return kernels.layer_norm_quantize;
  }

  float eps_;
  bool quantize_;
  int64_t heads_;
  bool bias_;
  NormFunction run_;
};

class QuantizeNode : public RowNode {
 public:
  QuantizeNode(const NodeView&, const RowKernels& kernels)
      : run_(kernels.quantize_rows) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), call.inputs[0].columns, call.inputs[0].rows,
          static_cast<uint8_t*>(call.outputs[0].data)},
         begin, end);
  }

 private:
  void (*run_)(const QuantizeRowsArgs&, int64_t, int64_t);
};

class BinaryNode : public RowNode {
 public:
  BinaryNode(const NodeView& view, const RowKernels& kernels)
      : repeats_(view.input(1).type.shape.rank() == 1),
        run_(view.node.op == "add"         ? kernels.add
             : view.node.op == "mul"       ? kernels.mul
             : view.node.op == "silu_gate" ? kernels.silu_gate
                                           : kernels.gelu_gate) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    ConstRows b = Rows(call.inputs[1]);
    if (repeats_) b.row_bytes = 0;
    run_(
        {Rows(call.inputs[0]), b, call.inputs[0].columns, Out(call.outputs[0])},
        begin, end);
  }

 private:
  bool repeats_;
  void (*run_)(const BinaryArgs&, int64_t, int64_t);
};

class UnaryNode : public RowNode {
 public:
  UnaryNode(const NodeView& view, const RowKernels& kernels)
      : parameter_(static_cast<float>(view.node.attributes.Float(
            view.node.op == "scale" ? "factor" : "cap"))),
        run_(Function(view.node, kernels)) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), call.inputs[0].columns, Out(call.outputs[0]),
          parameter_},
         begin, end);
  }

 private:
  static UnaryFunction Function(const Node& node, const RowKernels& kernels) {
    if (node.op == "silu") return kernels.silu;
    if (node.op == "sigmoid") return kernels.sigmoid;
    if (node.op == "scale") return kernels.scale;
    if (node.op == "softcap") return kernels.softcap;
    return node.attributes.String("approximation") == "tanh" ? kernels.gelu_tanh
                                                             : kernels.gelu;
  }

  float parameter_;
  UnaryFunction run_;
};

// An operand's row holds all dimensions but the first; what is normalised is
// the last one.
class SoftmaxNode : public Kernel {
 public:
  SoftmaxNode(const NodeView& view, const RowKernels& kernels)
      : run_(kernels.softmax) {
    const Shape& shape = view.input(0).type.shape;
    for (int i = 1; i + 1 < shape.rank(); ++i) parts_ *= shape[i].value;
  }

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[0].rows * parts_;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    const int64_t columns = call.inputs[0].columns / parts_;
    run_({{static_cast<const float*>(call.inputs[0].data), columns * 4},
          columns,
          {static_cast<float*>(call.outputs[0].data), columns * 4}},
         begin, end);
  }

 private:
  UnaryFunction run_;
  int64_t parts_ = 1;
};

class WeightedSumNode : public RowNode {
 public:
  WeightedSumNode(const NodeView&, const RowKernels& kernels)
      : run_(kernels.weighted_sum) {}

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    run_({Rows(call.inputs[0]), Rows(call.inputs[1]), call.inputs[1].columns,
          call.outputs[0].columns, Out(call.outputs[0])},
         begin, end);
  }

 private:
  void (*run_)(const WeightedSumArgs&, int64_t, int64_t);
};

class TakeRowsNode : public Kernel {
 public:
  TakeRowsNode(const NodeView&, const RowKernels& kernels)
      : run_(kernels.take_rows) {}

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
  void (*run_)(const TakeRowsArgs&, int64_t, int64_t);
};

RopeArgs RopeArgsOf(const Node& node) {
  RopeArgs args = {};
  args.head_dim = node.attributes.Int("head_dim");
  args.rope_dims = node.attributes.Int("rope_dims");
  args.style = node.attributes.String("style") == "halves"
                   ? RopeStyle::kHalves
                   : RopeStyle::kInterleaved;
  args.frequency_base = node.attributes.Float("base");
  args.frequency_scale = node.attributes.Float("scale");
  args.ramp_begin = node.attributes.Float("ramp_begin");
  args.ramp_end = node.attributes.Float("ramp_end");
  args.magnitude = static_cast<float>(node.attributes.Float("magnitude", 1));
  return args;
}

class RopeNode : public RowNode {
 public:
  RopeNode(const NodeView& view, const RowKernels& kernels)
      : args_(RopeArgsOf(view.node)),
        has_factors_(view.node.inputs.size() > 2),
        run_(kernels.rope) {}

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
  void (*run_)(const RopeArgs&, int64_t, int64_t);
};

// kv_write and rope_kv_write.
class KvWriteNode : public Kernel {
 public:
  KvWriteNode(const NodeView& view, const RowKernels& kernels)
      : rotate_(view.node.op == "rope_kv_write"), kernels_(kernels) {
    const ValueType& state = view.input(0).type;
    args_.write.heads = state.shape[1].value;
    args_.write.head_dim = state.shape[2].value;
    args_.write.type = KvTypeOf(state.dtype);
    args_.write.keys = state.layout == "keys";
    if (rotate_) {
      args_.rope = RopeArgsOf(view.node);
      args_.rope.heads = args_.write.heads;
      has_factors_ = view.node.inputs.size() > 4;
    }
  }

  int64_t Items(const KernelCall& call, int) const override {
    return call.inputs[1].rows;
  }

  void Run(const KernelCall& call, int, int64_t begin,
           int64_t end) const override {
    RopeKvWriteArgs args = args_;
    args.write.x = Rows(call.inputs[1]);
    args.write.state = call.inputs[0].state;
    args.write.positions = static_cast<const int32_t*>(call.inputs[2].data);
    args.write.sequence = static_cast<const int32_t*>(call.inputs[3].data);
    if (!rotate_) {
      kernels_.kv_write(args.write, begin, end);
      return;
    }
    args.rope.x = args.write.x;
    args.rope.positions = args.write.positions;
    if (has_factors_) {
      args.rope.factors = static_cast<const float*>(call.inputs[4].data);
    }
    kernels_.rope_kv_write(args, begin, end);
  }

 private:
  RopeKvWriteArgs args_ = {};
  bool rotate_;
  bool has_factors_ = false;
  const RowKernels& kernels_;
};

using MakeNode = std::unique_ptr<Kernel> (*)(const NodeView&,
                                             const RowKernels&);

template <typename T>
std::unique_ptr<Kernel> Make(const NodeView& view, const RowKernels& kernels) {
  return std::make_unique<T>(view, kernels);
}

class RowWiseRow : public KernelRow {
 public:
  RowWiseRow(const char* op, Isa isa, MakeNode make)
      : KernelRow(absl::StrCat(op, "_f32_", Name(isa)), op, isa, "", "lanes"),
        make_(make) {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return make_(view, *RowKernelsFor(isa()));
  }

 private:
  MakeNode make_;
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

class EmbedRow : public KernelRow {
 public:
  EmbedRow() : KernelRow("embed_any_row", "embed", Isa::kRef, "", "exact") {}

  std::string Refuses(const NodeView&) const override { return ""; }
  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<EmbedNode>(view);
  }
};

constexpr struct {
  const char* op;
  MakeNode make;
} kRowOps[] = {
    {"rms_norm", Make<NormNode>},
    {"layer_norm", Make<NormNode>},
    {"rms_norm_quantize", Make<NormNode>},
    {"layer_norm_quantize", Make<NormNode>},
    {"quantize_rows", Make<QuantizeNode>},
    {"add", Make<BinaryNode>},
    {"mul", Make<BinaryNode>},
    {"silu_gate", Make<BinaryNode>},
    {"gelu_gate", Make<BinaryNode>},
    {"scale", Make<UnaryNode>},
    {"softcap", Make<UnaryNode>},
    {"silu", Make<UnaryNode>},
    {"gelu", Make<UnaryNode>},
    {"softmax", Make<SoftmaxNode>},
    {"sigmoid", Make<UnaryNode>},
    {"weighted_sum", Make<WeightedSumNode>},
    {"take_rows", Make<TakeRowsNode>},
    {"rope", Make<RopeNode>},
    {"kv_write", Make<KvWriteNode>},
    {"rope_kv_write", Make<KvWriteNode>},
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

void AddRowKernels(KernelRows* rows) {
  for (const auto& entry : kRowOps) {
    for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
      if (RowKernelsFor(isa) != nullptr) {
        rows->push_back(
            std::make_unique<RowWiseRow>(entry.op, isa, entry.make));
      }
    }
  }
  rows->push_back(std::make_unique<EmbedRow>());
}

}  // namespace weft
