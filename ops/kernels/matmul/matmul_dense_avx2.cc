#include "ops/kernels/matmul/dense.inl"

namespace weft {

const DenseKernels kDenseKernelsAvx2 = kDenseKernels;

}  // namespace weft
