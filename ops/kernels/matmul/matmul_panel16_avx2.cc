// Packed quantised weights on AVX2; see byte_rows.h.

#if defined(__x86_64__)

#include "ops/kernels/matmul/byte_rows.h"

#define WEFT_ISA Avx2
#define WEFT_KERNELS BufferedKernels<ByteRows<PairProducts>>
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __x86_64__
