#include "ops/kernels/matmul/dense.inl"

namespace weft {

const DenseKernels kDenseKernelsAvx512 = kDenseKernels;

}  // namespace weft
