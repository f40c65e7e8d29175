#include "ops/kernels/matmul/matmul_kernels.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/fused_matmul.h"
#include "ops/kernels/matmul/bf16_isa.h"
#include "ops/kernels/matmul/bf16_matmul.h"
#include "ops/kernels/matmul/dense_matmul.h"
#include "ops/kernels/matmul/onednn_tile.h"
#include "ops/kernels/matmul/quantized_matmul.h"
#include "ops/kernels/rows/row_kernels.h"
#include "ops/op_table.h"
#include "ops/storage.h"

namespace weft {
namespace {

// The rows of x that a matmul function takes.
enum class RowForm { kQuantized, kFloats, kBf16 };

// What stands between a node's operands and a matmul function: a norm,
// quantisation or rounding of all rows into scratch as phase 0, the product as
// the last phase.
class MatmulNode : public Kernel {
 public:
  MatmulNode(const NodeView& view, const MatmulKernel& kernel, RowForm form)
      : parts_(PartsOf(view.node)),
        form_(form),
        run_(kernel.run),
        normalise_(NormFunctionFor(
            absl::StrCat(parts_.layer_norm ? "layer_norm" : "rms_norm",
                         parts_.quantize ? "_quantize" : ""),
            kernel.isa)),
        prepares_(parts_.norm >= 0 || form == RowForm::kBf16) {
    // oneDNN and the BF16 kernels take 64 rows of the weight at a time.
    panels_per_item_ = parts_.epilogue == MatmulEpilogue::kGateQuantize ||
                               kernel.group_panels == 4
                           ? 4
                           : 2;
  }

  int phases() const override { return prepares_ ? 2 : 1; }

  int64_t Items(const KernelCall& call, int phase) const override {
    if (phase + 1 < phases()) return call.inputs[0].rows;
    const int64_t rows_per_item = panels_per_item_ * kPanelRows;
    return (call.inputs[1].rows + rows_per_item - 1) / rows_per_item;
  }

  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    if (phase + 1 == phases()) {
      Multiply(call, begin, end);
    } else if (form_ == RowForm::kBf16) {
      Round(call, begin, end);
    } else {
      Normalise(
          call,
          {reinterpret_cast<float*>(call.scratch), call.inputs[0].columns * 4},
          begin, end);
    }
  }

 private:
  // Into `y`, whose row 0 belongs to row 0 of x, or quantised into scratch.
  void Normalise(const KernelCall& call, MutableRows y, int64_t begin,
                 int64_t end) const {
    const Operand& x = call.inputs[0];
    NormArgs args = {};
    args.x = {static_cast<const float*>(x.data), x.row_bytes};
    args.columns = x.columns;
    args.weight = static_cast<const float*>(call.inputs[parts_.norm].data);
    if (parts_.norm_bias >= 0) {
      args.bias = static_cast<const float*>(call.inputs[parts_.norm_bias].data);
    }
    args.epsilon = static_cast<float>(parts_.eps);
    args.rows = x.rows;
    if (parts_.quantize) {
      args.quantized = call.scratch;
    } else {
      args.y = y;
    }
    normalise_(args, begin, end);
  }

  // A row is normalised into thread scratch, then rounded.
  void Round(const KernelCall& call, int64_t begin, int64_t end) const {
    const Operand& x = call.inputs[0];
    float* row = reinterpret_cast<float*>(call.thread_scratch);
    for (int64_t i = begin; i < end; ++i) {
      const float* from = reinterpret_cast<const float*>(
          static_cast<const uint8_t*>(x.data) + i * x.row_bytes);
      if (parts_.norm >= 0) {
        // All rows lie in the same place: the distance of rows is 0.
        Normalise(call, {row, 0}, i, i + 1);
        from = row;
      }
      RoundRowToBf16(from, x.columns,
                     reinterpret_cast<uint16_t*>(
                         call.scratch + i * Bf16PaddedDepth(x.columns) * 2));
    }
  }

  void Multiply(const KernelCall& call, int64_t begin, int64_t end) const {
    const Operand& x = call.inputs[0];
    const Operand& weight = call.inputs[1];
    const Operand& y = call.outputs[0];
    MatmulArgs args = {};
    args.x = prepares_ ? call.scratch : x.data;
    args.x_row_bytes = prepares_ ? x.columns * 4 : x.row_bytes;
    args.rows = x.rows;
    args.depth = x.columns;
    args.weight = static_cast<const uint8_t*>(weight.data);
    args.weight_rows = weight.rows;
    args.epilogue = parts_.epilogue;
    args.activation = parts_.gate.activation;
    args.limit = static_cast<float>(parts_.gate.limit);
    args.slope = static_cast<float>(parts_.gate.slope);
    if (parts_.bias >= 0) {
      args.bias = static_cast<const float*>(call.inputs[parts_.bias].data);
    }
    if (parts_.residual >= 0) {
      const Operand& residual = call.inputs[parts_.residual];
      args.residual = static_cast<const float*>(residual.data);
      args.residual_row_bytes = residual.row_bytes;
    }
    if (parts_.epilogue == MatmulEpilogue::kGateQuantize) {
      args.quantized = static_cast<uint8_t*>(y.data);
    } else {
      args.y = static_cast<float*>(y.data);
      args.y_row_bytes = y.row_bytes;
    }
    const int64_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
    run_(args, begin * panels_per_item_,
         std::min(end * panels_per_item_, panels), call.thread_scratch);
  }

  const MatmulParts parts_;
  const RowForm form_;
  const MatmulFunction run_;
  const RowFunction<NormArgs> normalise_;
  const bool prepares_;  // x into scratch
  int64_t panels_per_item_;
};

const char* SummationOf(RowForm form) {
  switch (form) {
    case RowForm::kQuantized:
      return "blocks of 32";
    case RowForm::kFloats:
      return "chain";
    case RowForm::kBf16:
      return "bf16 pairs";
  }
  return "";
}

// One entry of the family's tables.
class MatmulRow : public KernelEntry {
 public:
  MatmulRow(const MatmulKernel& kernel, RowForm form)
      : KernelEntry(
            kernel.name(), "matmul", kernel.isa,
            absl::string_view(kernel.layout) == "rows" ? "" : kernel.layout,
            SummationOf(form)),
        kernel_(kernel),
        form_(form) {}

  bool Computes(const Node& node) const override { return IsMatmul(node); }

  std::string Refuses(const NodeView& view) const override {
    const MatmulParts parts = PartsOf(view.node);
    const ValueType& weight = view.input(1).type;
    if (weight.dtype != kernel_.weight) {
      return absl::StrCat("multiplies ", UpperName(kernel_.weight));
    }
    const bool x_quantized =
        parts.quantize || view.input(0).type.dtype == DType::kQ8Rows;
    if (x_quantized != (form_ == RowForm::kQuantized)) {
      return x_quantized ? "wants rows of f32" : "wants quantised rows";
    }
    if (view.WeightLayout(1) != weight_layout()) {
      return absl::StrCat("reads weights ", weight_layout().empty()
                                                ? "row after row"
                                                : "in " + weight_layout());
    }
    const int64_t rows = view.input(0).type.shape[0].Resolve(view.graph.bounds);
    if (rows < kernel_.min_rows || rows > kernel_.max_rows) {
      return kernel_.max_rows == kAnyRows
                 ? absl::StrCat("is for ", kernel_.min_rows, " rows or more")
                 : absl::StrCat("is for ", kernel_.min_rows, " to ",
                                kernel_.max_rows, " rows");
    }
    return "";
  }

  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<MatmulNode>(view, kernel_, form_);
  }

  int64_t ScratchBytes(const NodeView& view) const override {
    const MatmulParts parts = PartsOf(view.node);
    ValueType rows = view.input(0).type;
    if (form_ == RowForm::kBf16) {
      return rows.shape[0].Resolve(view.graph.bounds) *
             Bf16PaddedDepth(rows.shape[1].value) * 2;
    }
    if (parts.norm < 0) return 0;
    if (parts.quantize) rows.dtype = DType::kQ8Rows;
    return StorageBytes(rows, view.graph.bounds);
  }

  int64_t ThreadScratchBytes(const NodeView& view) const override {
    return kernel_.ThreadScratchBytes(view.input(1).type.shape[1].value);
  }

 private:
  const MatmulKernel& kernel_;
  const RowForm form_;
};

// Weights and rows of x as bfloat16, sums in f32: only when asked for.
class Bf16Row : public MatmulRow {
 public:
  explicit Bf16Row(const MatmulKernel& kernel)
      : MatmulRow(kernel, RowForm::kBf16) {}

  std::string NotAskedFor(const KernelOptions& options) const override {
    return options.f16_compute == F16Compute::kBF16
               ? ""
               : "is for --f16-compute bf16";
  }
  // Rows are rounded to 8 bits of fraction.
  double tolerance() const override { return 0.1; }
};

class OneDnnBf16Row : public Bf16Row {
 public:
  using Bf16Row::Bf16Row;
  std::string Refuses(const NodeView& view) const override {
    std::string why = Bf16Row::Refuses(view);
    return why.empty() ? WhyNotOneDnn(view.input(1).type.shape[1].value) : why;
  }
};

}  // namespace

void AddMatmulKernels(KernelEntries* rows) {
  for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, RowForm::kQuantized));
  }
  // What has to be asked for stands first: asked for, it is preferred.
  for (const MatmulKernel& kernel : OneDnnBf16MatmulKernels()) {
    rows->push_back(std::make_unique<OneDnnBf16Row>(kernel));
  }
  for (const MatmulKernel& kernel : Bf16MatmulKernels()) {
    rows->push_back(std::make_unique<Bf16Row>(kernel));
  }
  for (const MatmulKernel& kernel : DenseMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, RowForm::kFloats));
  }
  for (const MatmulKernel& kernel : WidenedMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, RowForm::kFloats));
  }
}

}  // namespace weft
