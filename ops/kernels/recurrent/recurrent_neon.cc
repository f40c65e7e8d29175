// Recurrent kernels on NEON.

#if defined(__aarch64__)

#include "ops/kernels/recurrent/recurrent.inl"

namespace weft {

const RecurrentKernels kRecurrentKernelsNeon = kRecurrentKernels;

}  // namespace weft

#endif  // __aarch64__
