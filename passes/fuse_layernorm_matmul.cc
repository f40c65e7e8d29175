// LayerNorm, and the rounding of its result, as the prologue of a product.
//
//   %3 = layer_norm(%2, $norm, $b)      %5 = fused_matmul(%2, $w, $norm, $b)
//   %4 = quantize_rows(%3)      ->           eps=1e-05 norm="layer"
//   %5 = matmul(%4, $w)                      norm_bias=1 quantize=1
//
// A norm whose rounded result several products read becomes
// layer_norm_quantize: they share it. A norm that several float products read
// stays as it is.
#include "ops/ops.h"
#include "passes/fuse_norm.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseLayerNormMatmul(Graph& graph, const PassOptions&) {
  FuseNorm(kLayerNormOp, kLayerNormQuantizeOp, &graph);
  return absl::OkStatus();
}

}  // namespace weft
