// Row kernels on AVX2, FMA and F16C.

#if defined(__x86_64__)

#include "ops/kernels/rows/rows.inl"

namespace weft {

const RowKernels kRowKernelsAvx2 = kRowKernels;

}  // namespace weft

#endif  // __x86_64__
