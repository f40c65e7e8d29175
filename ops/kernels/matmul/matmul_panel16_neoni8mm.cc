// Packed quantised weights on Advanced SIMD with matrix products; see
// neon_i8mm.h.

#if defined(__aarch64__)

#include "ops/kernels/matmul/neon_i8mm.h"

#define WEFT_ISA NeonI8mm
#define WEFT_KERNELS NeonI8mmKernels
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __aarch64__
