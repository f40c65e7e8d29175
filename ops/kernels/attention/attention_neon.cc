// Attention on Advanced SIMD.

#if defined(__aarch64__)

#include "ops/kernels/attention/attention.inl"

namespace weft {

const AttentionKernels kAttentionKernelsNeon = kAttentionKernels;

}  // namespace weft

#endif  // __aarch64__
