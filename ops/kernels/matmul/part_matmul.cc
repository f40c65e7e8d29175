#include "ops/kernels/matmul/part_matmul.h"

#include "absl/strings/str_cat.h"
#include "ops/kernels/matmul/dense_matmul.h"
#include "ops/kernels/matmul/quantized_matmul.h"

namespace weft {

PartMatmulRow::PartMatmulRow(const std::string& part, MatmulTiles tiles,
                             bool quantized)
    : KernelEntry(absl::StrCat(part, "_", tiles.name()), part + "_matmul",
                  tiles.any().isa,
                  absl::string_view(tiles.any().layout) == "rows"
                      ? ""
                      : tiles.any().layout,
                  quantized ? "blocks of 32" : "chain"),
      part_(part),
      tiles_(std::move(tiles)),
      quantized_(quantized) {}

std::string PartMatmulRow::Refuses(const NodeView& view) const {
  if (view.input(1).type.dtype != tiles_.any().weight) {
    return absl::StrCat("multiplies ", UpperName(tiles_.any().weight));
  }
  if ((view.input(0).type.dtype == DType::kQ8Rows) != quantized_) {
    return quantized_ ? "wants quantised rows" : "wants rows of f32";
  }
  if (view.WeightLayout(1) != weight_layout()) {
    return absl::StrCat("reads weights ", weight_layout().empty()
                                              ? "row after row"
                                              : "in " + weight_layout());
  }
  // Else a panel would have rows of two parts.
  const int64_t rows = PartRows(view);
  if (!weight_layout().empty() && rows % kPanelRows != 0) {
    return absl::StrCat("wants whole panels of ", kPanelRows, " rows for each ",
                        part_, ", found ", rows);
  }
  return "";
}

int64_t PartMatmulRow::ThreadScratchBytes(const NodeView& view) const {
  return tiles_.ThreadScratchBytes(view.input(1).type.shape[1].value);
}

void ForEachPartMatmul(
    const std::function<void(MatmulTiles tiles, bool quantized)>& add) {
  const auto add_table = [&](absl::Span<const MatmulKernel> table,
                             bool quantized) {
    for (MatmulTiles& tiles : TilesOf(table)) add(std::move(tiles), quantized);
  };
  add_table(QuantizedMatmulKernels(), true);
  add_table(DenseMatmulKernels(), false);
  add_table(WidenedMatmulKernels(), false);
}

}  // namespace weft
