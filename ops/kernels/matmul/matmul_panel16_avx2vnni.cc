// Packed quantised weights on AVX2 with AVX-VNNI; see byte_rows.h.

#if defined(__x86_64__)

#include "ops/kernels/matmul/byte_rows.h"

#define WEFT_ISA Avx2Vnni
#define WEFT_KERNELS BufferedKernels<ByteRows<DotProducts>>
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __x86_64__
