// The quantised weight types, a row each: all that is made for every type
// (DType, its row in the table, decoders, packers, kernels, encoders, mixes) is
// made from this list.
//
//   X(type, name, gguf_id, elements, bytes, file_type, fallback)
//
//   type        DType::k<type>, and Block<type> in ops/formats
//   name        as graphs print it
//   gguf_id     ggml_type in a GGUF file
//   elements    consecutive elements of a row that share a block
//   bytes       of a block
//   file_type   general.file_type of a file of this type (llama_ftype)
//   fallback    what rows get that are no multiple of `elements`
//
// Ids and sizes follow the GGUF specification (ggml-org/ggml docs/gguf.md).
// Included by files of any instruction set: no more than this macro.
#pragma once

// clang-format off
#define WEFT_FOR_EACH_QUANTIZED_TYPE(X)                 \
  X(Q4_0,    "q4_0",     2,  32,  18,  2, F16)          \
  X(Q4_1,    "q4_1",     3,  32,  20,  3, F16)          \
  X(Q5_0,    "q5_0",     6,  32,  22,  8, F16)          \
  X(Q5_1,    "q5_1",     7,  32,  24,  9, F16)          \
  X(Q8_0,    "q8_0",     8,  32,  34,  7, F16)          \
  X(Q2_K,    "q2_k",    10, 256,  84, 10, IQ4_NL)       \
  X(Q3_K,    "q3_k",    11, 256, 110, 11, IQ4_NL)       \
  X(Q4_K,    "q4_k",    12, 256, 144, 14, Q5_0)         \
  X(Q5_K,    "q5_k",    13, 256, 176, 16, Q5_1)         \
  X(Q6_K,    "q6_k",    14, 256, 210, 18, Q8_0)         \
  X(IQ2_XXS, "iq2_xxs", 16, 256,  66, 19, IQ4_NL)       \
  X(IQ2_XS,  "iq2_xs",  17, 256,  74, 20, IQ4_NL)       \
  X(IQ3_XXS, "iq3_xxs", 18, 256,  98, 23, IQ4_NL)       \
  X(IQ1_S,   "iq1_s",   19, 256,  50, 24, IQ4_NL)       \
  X(IQ4_NL,  "iq4_nl",  20,  32,  18, 25, F16)          \
  X(IQ3_S,   "iq3_s",   21, 256, 110, 26, IQ4_NL)       \
  X(IQ2_S,   "iq2_s",   22, 256,  82, 28, IQ4_NL)       \
  X(IQ4_XS,  "iq4_xs",  23, 256, 136, 30, IQ4_NL)       \
  X(IQ1_M,   "iq1_m",   29, 256,  56, 31, IQ4_NL)       \
  X(TQ1_0,   "tq1_0",   34, 256,  54, 36, Q4_0)         \
  X(TQ2_0,   "tq2_0",   35, 256,  66, 37, Q4_0)         \
  X(MXFP4,   "mxfp4",   39,  32,  17, 38, F16)          \
  X(NVFP4,   "nvfp4",   40,  64,  36, 39, Q8_0)         \
  X(Q1_0,    "q1_0",    41, 128,  18, 40, Q4_0)         \
  X(Q2_0,    "q2_0",    42,  64,  18, 41, Q4_0)
// clang-format on
