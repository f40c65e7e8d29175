#include "ops/kernels/attention/attention.inl"

namespace weft {

const AttentionKernels kAttentionKernelsAvx2 = kAttentionKernels;

}  // namespace weft
