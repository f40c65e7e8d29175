// Row kernels on AVX-512.

#if defined(__x86_64__)

#include "ops/kernels/rows/rows.inl"

namespace weft {

const RowKernels kRowKernelsAvx512 = kRowKernels;

}  // namespace weft

#endif  // __x86_64__
