#include "ops/kernels/matmul/matmul_kernels.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/fused_matmul.h"
#include "ops/kernels/matmul/dense_matmul.h"
#include "ops/kernels/matmul/quantized_matmul.h"
#include "ops/kernels/rows/row_kernels.h"
#include "ops/op_table.h"
#include "ops/storage.h"

namespace weft {
namespace {

// What stands between a node's operands and a matmul function: RMSNorm (and
// quantisation) of all rows into scratch as phase 0, the product as the last
// phase.
class MatmulNode : public Kernel {
 public:
  MatmulNode(const NodeView& view, MatmulFunction run, const RowKernels& rows)
      : parts_(PartsOf(view.node)), run_(run), rows_(rows) {
    panels_per_item_ =
        parts_.epilogue == MatmulEpilogue::kSiluGateQuantize ? 4 : 2;
  }

  int phases() const override { return parts_.norm >= 0 ? 2 : 1; }

  int64_t Items(const KernelCall& call, int phase) const override {
    if (phase + 1 < phases()) return call.inputs[0].rows;
    const int64_t rows_per_item = panels_per_item_ * kPanelRows;
    return (call.inputs[1].rows + rows_per_item - 1) / rows_per_item;
  }

  void Run(const KernelCall& call, int phase, int64_t begin,
           int64_t end) const override {
    if (phase + 1 < phases()) {
      Normalise(call, begin, end);
    } else {
      Multiply(call, begin, end);
    }
  }

 private:
  void Normalise(const KernelCall& call, int64_t begin, int64_t end) const {
    const Operand& x = call.inputs[0];
    NormArgs args = {};
    args.x = {static_cast<const float*>(x.data), x.row_bytes};
    args.columns = x.columns;
    args.weight = static_cast<const float*>(call.inputs[parts_.norm].data);
    args.epsilon = static_cast<float>(parts_.eps);
    args.rows = x.rows;
    if (parts_.quantize) {
      args.quantized = call.scratch;
      rows_.rms_norm_quantize(args, begin, end);
    } else {
      args.y = {reinterpret_cast<float*>(call.scratch), x.columns * 4};
      rows_.rms_norm(args, begin, end);
    }
  }

  void Multiply(const KernelCall& call, int64_t begin, int64_t end) const {
    const Operand& x = call.inputs[0];
    const Operand& weight = call.inputs[1];
    const Operand& y = call.outputs[0];
    MatmulArgs args = {};
    args.x = parts_.norm >= 0 ? call.scratch : x.data;
    args.x_row_bytes = parts_.norm >= 0 ? x.columns * 4 : x.row_bytes;
    args.rows = x.rows;
    args.depth = x.columns;
    args.weight = static_cast<const uint8_t*>(weight.data);
    args.weight_rows = weight.rows;
    args.epilogue = parts_.epilogue;
    if (parts_.bias >= 0) {
      args.bias = static_cast<const float*>(call.inputs[parts_.bias].data);
    }
    if (parts_.residual >= 0) {
      const Operand& residual = call.inputs[parts_.residual];
      args.residual = static_cast<const float*>(residual.data);
      args.residual_row_bytes = residual.row_bytes;
    }
    if (parts_.epilogue == MatmulEpilogue::kSiluGateQuantize) {
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
  const MatmulFunction run_;
  const RowKernels& rows_;
  int64_t panels_per_item_;
};

// One entry of the family's tables. `quantized_rows`: x is (or becomes)
// quantised rows; else floats.
class MatmulRow : public KernelRow {
 public:
  MatmulRow(const MatmulKernel& kernel, bool quantized_rows)
      : KernelRow(
            kernel.name, "matmul", kernel.isa,
            absl::string_view(kernel.layout) == "rows" ? "" : kernel.layout,
            quantized_rows ? "blocks of 32" : "chain"),
        kernel_(kernel),
        quantized_rows_(quantized_rows) {}

  bool Computes(const Node& node) const override { return IsMatmul(node); }

  std::string Refuses(const NodeView& view) const override {
    const MatmulParts parts = PartsOf(view.node);
    const ValueType& weight = view.input(1).type;
    if (weight.dtype != kernel_.weight) {
      return absl::StrCat("multiplies ", UpperName(kernel_.weight));
    }
    const bool x_quantized =
        parts.quantize || view.input(0).type.dtype == DType::kQ8Rows;
    if (x_quantized != quantized_rows_) {
      return quantized_rows_ ? "wants quantised rows" : "wants rows of f32";
    }
    if (view.WeightLayout(1) != weight_layout()) {
      return absl::StrCat("reads weights ", weight_layout().empty()
                                                ? "row after row"
                                                : "in " + weight_layout());
    }
    const int64_t rows = view.input(0).type.shape[0].Resolve(view.graph.bounds);
    if (rows < kernel_.min_rows || rows > kernel_.max_rows) {
      return absl::StrCat("is for ", kernel_.min_rows, " to ", kernel_.max_rows,
                          " rows");
    }
    return "";
  }

  std::unique_ptr<Kernel> Create(const NodeView& view) const override {
    return std::make_unique<MatmulNode>(view, kernel_.run,
                                        *RowKernelsFor(isa()));
  }

  int64_t ScratchBytes(const NodeView& view) const override {
    const MatmulParts parts = PartsOf(view.node);
    if (parts.norm < 0) return 0;
    ValueType rows = view.input(0).type;
    if (parts.quantize) rows.dtype = DType::kQ8Rows;
    return StorageBytes(rows, view.graph.bounds);
  }

  int64_t ThreadScratchBytes(const NodeView& view) const override {
    return kernel_.thread_scratch_bytes == nullptr
               ? 0
               : kernel_.thread_scratch_bytes(
                     view.input(1).type.shape[1].value);
  }

 private:
  const MatmulKernel& kernel_;
  const bool quantized_rows_;
};

}  // namespace

void AddMatmulKernels(KernelRows* rows) {
  for (const MatmulKernel& kernel : QuantizedMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, true));
  }
  for (const MatmulKernel& kernel : DenseMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, false));
  }
  for (const MatmulKernel& kernel : WidenedMatmulKernels()) {
    rows->push_back(std::make_unique<MatmulRow>(kernel, false));
  }
}

}  // namespace weft
