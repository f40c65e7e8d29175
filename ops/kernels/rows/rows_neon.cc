// Row kernels on Advanced SIMD.

#if defined(__aarch64__)

#include "ops/kernels/rows/rows.inl"

namespace weft {

const RowKernels kRowKernelsNeon = kRowKernels;

}  // namespace weft

#endif  // __aarch64__
