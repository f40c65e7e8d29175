// Entry points of the files compiled for one instruction set each: functions of
// type MatmulFunction (matmul.h), one per block type. Only the table
// (quantized_matmul.cc) calls them by name.
#pragma once

#include "ops/kernels/blocks.h"
#include "ops/kernels/matmul/matmul.h"

// The list of quantised types, for explicit instantiation and for the table.
#define WEFT_FOR_EACH_QUANTIZED_TYPE(X) \
  X(Q4_0)                               \
  X(Q4_1)                               \
  X(Q5_0)                               \
  X(Q5_1)                               \
  X(Q8_0)                               \
  X(Q2_K)                               \
  X(Q3_K)                               \
  X(Q4_K)                               \
  X(Q5_K)                               \
  X(Q6_K)                               \
  X(IQ4_NL)                             \
  X(IQ4_XS)

namespace weft {

// Packed weights (panel16.h), any number of rows. Up to some rows they are read
// as packed and no scratch is used: measured on AVX-512 VNNI, and on AVX2 for
// the loops over unpacked bytes that the others share.
constexpr int64_t kPackedRowsVnni512 = 32;
constexpr int64_t kPackedRowsOfBytes = 8;

template <class Block>
void MatmulPanel16Avx512Vnni(const MatmulArgs& args, int64_t panel_begin,
                             int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16Avx512(const MatmulArgs& args, int64_t panel_begin,
                         int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16Avx2Vnni(const MatmulArgs& args, int64_t panel_begin,
                           int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16Avx2(const MatmulArgs& args, int64_t panel_begin,
                       int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16NeonI8mm(const MatmulArgs& args, int64_t panel_begin,
                           int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16NeonDot(const MatmulArgs& args, int64_t panel_begin,
                          int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulPanel16Neon(const MatmulArgs& args, int64_t panel_begin,
                       int64_t panel_end, uint8_t* thread_scratch);

// Weights as rows of GGUF blocks, any number of rows; no scratch.
template <class Block>
void MatmulRowsAvx2(const MatmulArgs& args, int64_t panel_begin,
                    int64_t panel_end, uint8_t* thread_scratch);
template <class Block>
void MatmulRowsNeon(const MatmulArgs& args, int64_t panel_begin,
                    int64_t panel_end, uint8_t* thread_scratch);

}  // namespace weft
