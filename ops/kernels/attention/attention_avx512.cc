// Attention on AVX-512.

#if defined(__x86_64__)

#include "ops/kernels/attention/attention.inl"

namespace weft {

const AttentionKernels kAttentionKernelsAvx512 = kAttentionKernels;

}  // namespace weft

#endif  // __x86_64__
