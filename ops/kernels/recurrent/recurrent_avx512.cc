// Recurrent kernels on AVX-512.

#if defined(__x86_64__)

#include "ops/kernels/recurrent/recurrent.inl"

namespace weft {

const RecurrentKernels kRecurrentKernelsAvx512 = kRecurrentKernels;

}  // namespace weft

#endif  // __x86_64__
