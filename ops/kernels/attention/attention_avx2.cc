// Attention on AVX2, FMA and F16C.

#if defined(__x86_64__)

#include "ops/kernels/attention/attention.inl"

namespace weft {

const AttentionKernels kAttentionKernelsAvx2 = kAttentionKernels;

}  // namespace weft

#endif  // __x86_64__
