// The codewords of the codebook types (codebooks.h), by their indices.
//
// A codeword is a word of 32 bits: digit i of four is the low nibble of byte i,
// and of eight, digit 4 + i is the high nibble of byte i. A vector of words
// becomes the bytes of four columns with a mask, or with a shift and a mask.
#pragma once

#include <cstdint>

namespace weft {

extern const uint32_t* const kGridIQ2_XXS;  // 256 of 8 digits below 3
extern const uint32_t* const kGridIQ2_XS;   // 512 of 8 digits below 3
extern const uint32_t* const kGridIQ2_S;    // 1024 of 8 digits below 3
extern const uint32_t* const kGridIQ3_XXS;  // 256 of 4 digits below 8
extern const uint32_t* const kGridIQ3_S;    // 512 of 4 digits below 8
extern const uint32_t* const kGridIQ1;      // 2048 of 8 digits below 3

}  // namespace weft
