// Packed codebook types (ops/formats/codebooks.h) against one row, on AVX-512
// VNNI with byte permutes (VBMI) and bit matrices (GFNI).
//
// A gather of 16 codewords takes ten cycles, longer than memory needs to
// deliver what it looks up. Byte permutes look up 64 bytes at a time in tables
// of 128: a codeword of 12 or 16 bits is two bytes from two tables, and tables
// longer than 128 are chosen between by masks of the index's high bits.
//
// The two bytes of a codeword are put side by side, which makes of 16 rows with
// four indices each two vectors of 8 rows with four codewords of 16 bits. One
// multishift takes eight digits of them apart, a permute turns them into
// magnitudes, and the signs are given to x. So a vector holds eight columns of
// eight rows: its sums come two for each row, of the first four columns and of
// the last, and are added when the block ends. They are integers: the result is
// that of any order.
//
// With tables for indices of ten bits and more (IQ2_S, IQ1) this takes as long
// as gathering, and with two rows of x the signs cost what the lookups gain.

#if defined(__x86_64__)

#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/vnni512.h"

namespace weft {
namespace {

// The same of rows 0, 1, 4, 5, 8, 9, 12, 13 and of rows 2, 3, 6, 7, 10 ...
struct Eights {
  __m512i first, second;
};

template <class Block>
struct GridTables {
  using Codebook = typename BlockFormat<Block>::Codebook;
  static constexpr int kDigitBits = Codebook::kRun == 8 ? 2 : 3;
  static constexpr int kWords = 1 << Codebook::kIndexBits;

  GridTables() {
    for (int i = 0; i < kWords; ++i) {
      const uint32_t word = Codebook::Words()[i];
      int packed = 0;
      for (int k = 0; k < Codebook::kRun; ++k) {
        const int digit = word >> (8 * (k % 4) + k / 4 * 4) & 7;
        packed |= digit << (kDigitBits * k);
      }
      low[i] = static_cast<uint8_t>(packed);
      high[i] = static_cast<uint8_t>(packed >> 8);
    }
    for (int i = 0; i < 64; ++i) {
      magnitudes[i] =
          static_cast<uint8_t>(Codebook::kValues[i & ((1 << kDigitBits) - 1)]);
      for (int j = 0; j < 4; ++j) {
        const int column = 8 * j + i % 8;
        shifts[j][i] =
            static_cast<uint8_t>(16 * (column / Codebook::kRun) +
                                 kDigitBits * (column % Codebook::kRun));
      }
    }
  }

  // Of each codeword, digit i at bit i * kDigitBits.
  alignas(64) uint8_t low[kWords], high[kWords];
  alignas(64) uint8_t magnitudes[64];  // by digit; what stands above it is any
  // Where the digits of columns 8j + i are in four codewords of 16 bits.
  alignas(64) uint8_t shifts[4][64];
};

template <class Block>
const GridTables<Block>& TablesOf() {
  static const GridTables<Block> tables;
  return tables;
}

// The pairs of sums as one for each row, in order.
WEFT_INLINE __m512i SumOfPairs(const Eights& sums) {
  const __m512 a = _mm512_castsi512_ps(sums.first);
  const __m512 b = _mm512_castsi512_ps(sums.second);
  return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                          _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
}

// --- Signs and high bits ----------------------------------------------------

// Four bytes of each word against masks for them.
WEFT_INLINE __mmask64 TestBytes(__m512i bytes, uint32_t masks) {
  return _mm512_test_epi8_mask(bytes,
                               _mm512_set1_epi32(static_cast<int>(masks)));
}

// UnpackSigns. The parity of eight bits, of which the last is another's, is
// xored into its place: that leaves the parity of the seven.
template <class Block>
WEFT_INLINE __m512i GridSigns(const uint8_t* quants) {
  using Panel = BlockFormat<Block>;
  __m512i signs = _mm512_loadu_si512(quants + 64 * Panel::kIndexVectors);
  if constexpr (Panel::Codebook::kSevenSigns) {
    __m512i odd = _mm512_xor_si512(signs, _mm512_rol_epi32(signs, 16));
    odd = _mm512_xor_si512(odd, _mm512_rol_epi32(odd, 8));
    odd = _mm512_xor_si512(odd, _mm512_slli_epi32(odd, 1));
    signs = _mm512_ternarylogic_epi32(
        signs, odd, _mm512_set1_epi32(static_cast<int>(0xaa000000u)), 0x78);
  }
  return signs;
}

// Of the signs of eight rows, each word twice, those of columns 8j .. 8j + 7:
// bit 2j of the first four bytes, bit 2j + 1 of the others.
WEFT_INLINE __mmask64 MinusAt(__m512i signs, int j) {
  const uint64_t bytes = 0x0101010101010101u;
  const uint64_t mask =
      (bytes & 0xffffffffu) << (2 * j) | (bytes >> 32) << (2 * j + 1) << 32;
  return _mm512_test_epi8_mask(signs,
                               _mm512_set1_epi64(static_cast<int64_t>(mask)));
}

// Each of 16 bytes four times.
WEFT_INLINE __m512i FourTimes(const uint8_t* p) {
  return _mm512_mullo_epi32(UnsignedToInts(p), _mm512_set1_epi32(0x01010101));
}

// 2 * number + 1 of an odd scale.
template <class Block>
WEFT_INLINE __m512i OddNumber(const uint8_t* quants, const uint8_t* meta, int k,
                              int h) {
  using Panel = BlockFormat<Block>;
  if constexpr (Panel::kScales == PanelScales::kOddInQuants) {
    // Bits 1, 3, 5, 7 of the last byte as bits 1 to 4 beside a 1.
    const __m512i signs =
        _mm512_loadu_si512(quants + 64 * Panel::kIndexVectors);
    const __m512i bits = _mm512_set1_epi64(0x0002082080000000);
    return _mm512_srli_epi32(_mm512_gf2p8affine_epi64_epi8(signs, bits, 1), 24);
  } else {
    const __m512i number =
        (__m512i)UnpackOddNumber<Block>(quants, meta, k, h, 0);
    return _mm512_add_epi32(_mm512_add_epi32(number, number),
                            _mm512_set1_epi32(1));
  }
}

// --- Codewords --------------------------------------------------------------

// table[index], of 128 << levels bytes: the low seven bits of an index are in
// `index`, the others in masks.
template <int levels>
WEFT_INLINE __m512i LookUpBytes(const uint8_t* table, __m512i index,
                                const __mmask64* high) {
  if constexpr (levels == 0) {
    return _mm512_permutex2var_epi8(_mm512_load_si512(table), index,
                                    _mm512_load_si512(table + 64));
  } else {
    constexpr int half = 64 << levels;
    return _mm512_mask_blend_epi8(
        high[levels - 1], LookUpBytes<levels - 1>(table, index, high),
        LookUpBytes<levels - 1>(table + half, index, high));
  }
}

// The magnitudes of 32 columns: w[j] has columns 8j .. 8j + 7.
template <class Block>
WEFT_INLINE void LookUpGrid(const GridTables<Block>& tables,
                            const uint8_t* quants, Eights w[4]) {
  using Panel = BlockFormat<Block>;
  using Codebook = typename Panel::Codebook;
  constexpr int bits = Codebook::kIndexBits;
  __m512i high_bits = _mm512_setzero_si512();
  if constexpr (Codebook::kHighBytes == 1) {
    high_bits = FourTimes(quants + 64 * (Panel::kIndexVectors + 1));
  } else if constexpr (bits > 8) {
    // Those in the places of the last signs, all in the last byte.
    high_bits = _mm512_shuffle_epi8(
        _mm512_loadu_si512(quants + 64 * Panel::kIndexVectors),
        _mm512_broadcast_i32x4(_mm_set_epi8(15, 15, 15, 15, 11, 11, 11, 11, 7,
                                            7, 7, 7, 3, 3, 3, 3)));
  }
  const __m512i magnitudes = _mm512_load_si512(tables.magnitudes);
  WEFT_UNROLL for (int v = 0; v < Panel::kIndexVectors; ++v) {
    const __m512i index = _mm512_loadu_si512(quants + 64 * v);
    __mmask64 high[2] = {_mm512_movepi8_mask(index), 0};
    if constexpr (bits == 9 && Codebook::kRun == 4) {
      high[1] = TestBytes(high_bits, v == 0 ? 0x08040201u : 0x80402010u);
    } else if constexpr (bits == 9) {
      high[1] = TestBytes(high_bits, 0x80200802u);
    }
    const __m512i low = LookUpBytes<bits - 7>(tables.low, index, high);
    const __m512i top = LookUpBytes<bits - 7>(tables.high, index, high);
    const __m512i first = _mm512_unpacklo_epi8(low, top);
    const __m512i second = _mm512_unpackhi_epi8(low, top);
    constexpr int eights = 4 / Panel::kIndexVectors;
    WEFT_UNROLL for (int j = 0; j < eights; ++j) {
      const __m512i shifts = _mm512_load_si512(tables.shifts[j]);
      Eights& out = w[eights * v + j];
      out.first = _mm512_permutexvar_epi8(
          _mm512_multishift_epi64_epi8(shifts, first), magnitudes);
      out.second = _mm512_permutexvar_epi8(
          _mm512_multishift_epi64_epi8(shifts, second), magnitudes);
    }
  }
}

// --- Products ---------------------------------------------------------------

// Sums of one row of x, columns 8 * begin .. 8 * end - 1 of 32. minus: the
// signs.
WEFT_INLINE Eights SignedProducts(const Eights w[4], const Eights& minus,
                                  const uint8_t* x, int begin, int end) {
  const __m512i zero = _mm512_setzero_si512();
  Eights dots = {zero, zero};
  WEFT_UNROLL for (int j = begin; j < end; ++j) {
    int64_t eight;
    memcpy(&eight, x + 8 * j, sizeof(eight));
    const __m512i y = _mm512_set1_epi64(eight);
    dots.first = _mm512_dpbusd_epi32(
        dots.first, w[j].first,
        _mm512_mask_sub_epi8(y, MinusAt(minus.first, j), zero, y));
    dots.second = _mm512_dpbusd_epi32(
        dots.second, w[j].second,
        _mm512_mask_sub_epi8(y, MinusAt(minus.second, j), zero, y));
  }
  return dots;
}

// One row of x.
template <class Block>
__attribute__((noinline)) void GridPanel512(const uint8_t* panel, int64_t depth,
                                            const uint8_t* x, float* out) {
  using Panel = BlockFormat<Block>;
  constexpr int per_32 = Panel::kScalesPer32;
  constexpr int stream_bytes = Panel::kSuperBlockBytes / Panel::kBlocks;
  const GridTables<Block>& tables = TablesOf<Block>();
  __m512 sum = _mm512_setzero_ps();
  for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
    const uint8_t* meta = panel + PanelMeta<Block>(s, depth);
    const PanelHalves halves = LoadHalves<Block>(meta, 0);
    const uint8_t* quants = panel + PanelQuants<Block>(s * Panel::kBlocks);
    for (int k = 0; k < Panel::kBlocks; ++k) {
      WEFT_UNROLL for (int o = 0; o < stream_bytes; o += 64) {
        __asm__ volatile("prefetcht0 %0" : : "m"(quants[kPrefetchAhead + o]));
      }
      const TileFields fields = FieldsOf(x, 1, 0);
      const __m512 xs = _mm512_set1_ps(fields.scale[0]);
      Eights w[4];
      LookUpGrid<Block>(tables, quants, w);
      const __m512i signs = GridSigns<Block>(quants);
      const Eights minus = {_mm512_unpacklo_epi32(signs, signs),
                            _mm512_unpackhi_epi32(signs, signs)};
      WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
        constexpr int count = 4 / per_32;
        const __m512i dot =
            SumOfPairs(SignedProducts(w, minus, x, count * h, count * (h + 1)));
        const __m512 scale = _mm512_mul_ps(
            halves.d, _mm512_cvtepi32_ps(OddNumber<Block>(quants, meta, k, h)));
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_mul_ps(scale, xs),
                              sum);
      }
      quants += Panel::kQuantBytes;
      x += kQuantizedRowsBlockBytes;
    }
  }
  _mm512_storeu_ps(out, sum);
}

struct GridKernels {
  template <class Block>
  static void Panel(const uint8_t* panel, int64_t depth, const uint8_t* x,
                    int rows, float* sums) {
    if (rows == 1) return GridPanel512<Block>(panel, depth, x, sums);
    Vnni512Kernels::Panel<Block>(panel, depth, x, rows, sums);
  }
};

}  // namespace

// Declared in quantized_matmul.cc.
template <class Block>
void Panel16SingleAvx512Vbmi(const MatmulArgs& args, int64_t panel_begin,
                             int64_t panel_end, uint8_t*) {
  PanelMatmulSingle<Block, GridKernels>(args, panel_begin, panel_end);
}

#define WEFT_INSTANTIATE(TYPE)                        \
  template void Panel16SingleAvx512Vbmi<Block##TYPE>( \
      const MatmulArgs&, int64_t, int64_t, uint8_t*);
WEFT_INSTANTIATE(IQ2_XXS)
WEFT_INSTANTIATE(IQ2_XS)
WEFT_INSTANTIATE(IQ3_XXS)
WEFT_INSTANTIATE(IQ3_S)

}  // namespace weft

#endif  // __x86_64__
