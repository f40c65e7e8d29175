// Packed quantised weights on AVX2 with AVX-VNNI; see byte_rows.h and
// panel_driver.h.

#if defined(__x86_64__)

#include "ops/kernels/matmul/byte_rows.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"

namespace weft {
namespace {

using Kernels = BufferedKernels<ByteRows<DotProducts>>;

}  // namespace

template <class Block>
void MatmulPanel16Avx2Vnni(const MatmulArgs& args, int64_t panel_begin,
                           int64_t panel_end, uint8_t* thread_scratch) {
  PanelMatmul<Block, Kernels>(args, panel_begin, panel_end, thread_scratch);
}

template <class Block>
void MatmulPanel16FewAvx2Vnni(const MatmulArgs& args, int64_t panel_begin,
                              int64_t panel_end, uint8_t* /*scratch*/) {
  PanelMatmulFew<Block, Kernels>(args, panel_begin, panel_end);
}

#define WEFT_INSTANTIATE(TYPE)                                                 \
  template void MatmulPanel16Avx2Vnni<Block##TYPE>(const MatmulArgs&, int64_t, \
                                                   int64_t, uint8_t*);         \
  template void MatmulPanel16FewAvx2Vnni<Block##TYPE>(                         \
      const MatmulArgs&, int64_t, int64_t, uint8_t*);
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)
#undef WEFT_INSTANTIATE

}  // namespace weft

#endif  // __x86_64__
