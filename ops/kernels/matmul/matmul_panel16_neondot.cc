// Packed quantised weights on Advanced SIMD with dot products; see neon.h.

#if defined(__aarch64__)

#include "ops/kernels/matmul/neon.h"

#define WEFT_ISA NeonDot
#define WEFT_KERNELS NeonKernels
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __aarch64__
