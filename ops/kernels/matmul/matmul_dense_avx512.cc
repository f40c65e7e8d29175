// Dense matmuls on AVX-512.

#if defined(__x86_64__)

#include "ops/kernels/matmul/dense.inl"

namespace weft {

const DenseKernels kDenseKernelsAvx512 = kDenseKernels;

}  // namespace weft

#endif  // __x86_64__
