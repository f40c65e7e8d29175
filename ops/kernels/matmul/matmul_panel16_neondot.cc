// Packed quantised weights on Advanced SIMD with dot products; see neon.h and
// panel_driver.h.

#if defined(__aarch64__)

#include "ops/kernels/matmul/neon.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"

namespace weft {

template <class Block>
void MatmulPanel16NeonDot(const MatmulArgs& args, int64_t panel_begin,
                          int64_t panel_end, uint8_t* thread_scratch) {
  PanelMatmul<Block, NeonKernels>(args, panel_begin, panel_end, thread_scratch);
}

template <class Block>
void MatmulPanel16FewNeonDot(const MatmulArgs& args, int64_t panel_begin,
                             int64_t panel_end, uint8_t* /*scratch*/) {
  PanelMatmulFew<Block, NeonKernels>(args, panel_begin, panel_end);
}

#define WEFT_INSTANTIATE(TYPE)                                                \
  template void MatmulPanel16NeonDot<Block##TYPE>(const MatmulArgs&, int64_t, \
                                                  int64_t, uint8_t*);         \
  template void MatmulPanel16FewNeonDot<Block##TYPE>(                         \
      const MatmulArgs&, int64_t, int64_t, uint8_t*);
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)
#undef WEFT_INSTANTIATE

}  // namespace weft

#endif  // __aarch64__
