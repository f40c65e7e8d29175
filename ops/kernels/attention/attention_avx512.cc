#include "ops/kernels/attention/attention.inl"

namespace weft {

const AttentionKernels kAttentionKernelsAvx512 = kAttentionKernels;

}  // namespace weft
