// Dense matmuls on Advanced SIMD.

#if defined(__aarch64__)

#include "ops/kernels/matmul/dense.inl"

namespace weft {

const DenseKernels kDenseKernelsNeon = kDenseKernels;

}  // namespace weft

#endif  // __aarch64__
