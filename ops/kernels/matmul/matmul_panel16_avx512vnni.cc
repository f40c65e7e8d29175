// Packed quantised weights on AVX-512 VNNI; see vnni512.h.

#if defined(__x86_64__)

#include "ops/kernels/matmul/vnni512.h"

#define WEFT_ISA Avx512Vnni
#define WEFT_KERNELS Vnni512Kernels
#define WEFT_IN_REGISTERS
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __x86_64__
