// Recurrent kernels on AVX2 and FMA.

#if defined(__x86_64__)

#include "ops/kernels/recurrent/recurrent.inl"

namespace weft {

const RecurrentKernels kRecurrentKernelsAvx2 = kRecurrentKernels;

}  // namespace weft

#endif  // __x86_64__
