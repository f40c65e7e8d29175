#include "ops/kernels/rows/rows.inl"

namespace weft {

const RowKernels kRowKernelsAvx2 = kRowKernels;

}  // namespace weft
