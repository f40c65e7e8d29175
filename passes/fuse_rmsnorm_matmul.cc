// RMSNorm, and the rounding of its result, as the prologue of a product.
//
//   %3 = rms_norm(%2, $norm) eps=1e-05
//   %4 = quantize_rows(%3)              %5 = fused_matmul(%2, $w, $norm)
//   %5 = matmul(%4, $w)         ->           eps=1e-05 quantize=1
//
// A norm whose rounded result several products read becomes rms_norm_quantize:
// they share it. A norm that several float products read stays as it is.
#include "ops/ops.h"
#include "passes/fuse_norm.h"
#include "passes/pass.h"

namespace weft {

absl::Status FuseRmsNormMatmul(Graph& graph, const PassOptions&) {
  FuseNorm(kRmsNormOp, kRmsNormQuantizeOp, &graph);
  return absl::OkStatus();
}

}  // namespace weft
