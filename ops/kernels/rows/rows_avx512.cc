#include "ops/kernels/rows/rows.inl"

namespace weft {

const RowKernels kRowKernelsAvx512 = kRowKernels;

}  // namespace weft
