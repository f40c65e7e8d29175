// Dense matmuls on AVX2, FMA and F16C.

#if defined(__x86_64__)

#include "ops/kernels/matmul/dense.inl"

namespace weft {

const DenseKernels kDenseKernelsAvx2 = kDenseKernels;

}  // namespace weft

#endif  // __x86_64__
