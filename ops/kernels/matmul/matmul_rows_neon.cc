// Unpacked quantised weights: portable C++ (rows_driver.h), compiled for
// Advanced SIMD.

#if defined(__aarch64__)

#include "ops/kernels/matmul/quantized_isa.h"
#include "ops/kernels/matmul/rows_driver.h"

namespace weft {

template <class Block>
void MatmulRowsNeon(const MatmulArgs& args, int64_t panel_begin,
                    int64_t panel_end, uint8_t* /*scratch*/) {
  RowsMatmul<Block>(args, panel_begin, panel_end);
}

#define WEFT_INSTANTIATE(TYPE, ...)                                     \
  template void MatmulRowsNeon<Block##TYPE>(const MatmulArgs&, int64_t, \
                                            int64_t, uint8_t*);
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)
#undef WEFT_INSTANTIATE

}  // namespace weft

#endif  // __aarch64__
