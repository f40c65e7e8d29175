// Entry points of the files compiled for one instruction set each: functions of
// type MatmulFunction (matmul.h), one per block type. Only the table
// (quantized_matmul.cc) calls them by name.
#pragma once

#include "ops/formats/formats.h"
#include "ops/kernels/matmul/matmul.h"

namespace weft {

#define WEFT_DECLARE(FUNCTION)                               \
  template <class Block>                                     \
  void FUNCTION(const MatmulArgs& args, int64_t panel_begin, \
                int64_t panel_end, uint8_t* thread_scratch);

// Packed weights (panel16.h), in the ways of panel_driver.h: one panel at a
// time, two panels unpacked in registers, two panels unpacked before.
#define WEFT_DECLARE_PANEL16(ISA)  \
  WEFT_DECLARE(Panel16Single##ISA) \
  WEFT_DECLARE(Panel16Packed##ISA) \
  WEFT_DECLARE(Panel16Unpacked##ISA)

WEFT_DECLARE_PANEL16(Avx512Vnni)
WEFT_DECLARE_PANEL16(Avx512)
WEFT_DECLARE_PANEL16(Avx2Vnni)
WEFT_DECLARE_PANEL16(Avx2)
WEFT_DECLARE_PANEL16(NeonI8mm)
WEFT_DECLARE_PANEL16(NeonDot)
WEFT_DECLARE_PANEL16(Neon)

// Only unpacked before, of types with one scale per 32 columns.
WEFT_DECLARE(Panel16UnpackedAvx512Amx)

// Weights as rows of GGUF blocks, any number of rows; no scratch.
WEFT_DECLARE(MatmulRowsAvx2)
WEFT_DECLARE(MatmulRowsNeon)

#undef WEFT_DECLARE_PANEL16
#undef WEFT_DECLARE

}  // namespace weft
