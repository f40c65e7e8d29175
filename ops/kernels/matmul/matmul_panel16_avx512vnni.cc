// Packed quantised weights on AVX-512 VNNI; see vnni512.h. TQ1_0
// (ops/formats/ternary.h) has a loop of its own for few rows: a byte b is a
// fraction that carries its next digit when multiplied by 3,
//   3b = 256 * digit + the next b
// so digits need not be taken out. The sum of digit times x is that of
// (3b - next b) times x over 256, and the products take bytes as they are.

#if defined(__x86_64__)

#include "ops/kernels/matmul/vnni512.h"

namespace weft {
namespace {

// Sums of b and of the next b, for each row.
template <int rows>
struct TernarySums {
  __m512i now[rows], next[rows];
};

// The digits of a word of 4 columns at column 4g of x. The next bytes.
template <int rows>
WEFT_INLINE __m512i AddDigit(__m512i bytes, const uint8_t* x, int g,
                             TernarySums<rows>* sums) {
  const __m512i next = _mm512_add_epi8(_mm512_add_epi8(bytes, bytes), bytes);
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    const __m512i y = Broadcast32(x + 32 * m + 4 * g);
    sums->now[m] = _mm512_dpbusd_epi32(sums->now[m], bytes, y);
    sums->next[m] = _mm512_dpbusd_epi32(sums->next[m], next, y);
  }
  return next;
}

template <class Block, int rows>
__attribute__((noinline)) void TernaryRows512(const uint8_t* panel,
                                              int64_t depth, const uint8_t* x,
                                              float* out) {
  using Panel = BlockFormat<Block>;
  __m512 sums[rows];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) sums[m] = _mm512_setzero_ps();
  for (int64_t s = 0; s < depth / Panel::kColumns; ++s) {
    const __m512 d = LoadHalves<Block>(panel + PanelMeta<Block>(s, depth), 0).d;
    const uint8_t* quants = panel + PanelQuants<Block>(s * Panel::kBlocks);
    WEFT_UNROLL for (int o = 0; o < Panel::kSuperBlockBytes; o += 64) {
      __asm__ volatile("prefetcht0 %0" : : "m"(quants[kPrefetchAhead + o]));
    }
    __m512i word[13];
    WEFT_UNROLL for (int i = 0; i < 13; ++i) {
      word[i] = _mm512_loadu_si512(quants + 64 * i);
    }
    WEFT_UNROLL for (int k = 0; k < Panel::kBlocks; ++k) {
      TernarySums<rows> dots;
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        dots.now[m] = dots.next[m] = _mm512_setzero_si512();
      }
      // Where the words of a block lie: PlaceOfDigit.
      WEFT_UNROLL for (int g = 0; g < 8; ++g) {
        __m512i& bytes = word[k < 5 ? g : k < 7 || g < 4 ? 8 + g % 4 : 12];
        bytes = AddDigit<rows>(bytes, x, g, &dots);
      }
      const TileFields fields = FieldsOf(x, rows, 0);
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const __m512i thrice = _mm512_add_epi32(
            _mm512_add_epi32(dots.now[m], dots.now[m]), dots.now[m]);
        const __m512i dot = _mm512_sub_epi32(
            _mm512_srai_epi32(_mm512_sub_epi32(thrice, dots.next[m]), 8),
            _mm512_set1_epi32(SumOf<1>(fields, m, 0)));
        const __m512 xs = _mm512_set1_ps(fields.scale[m]);
        sums[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_mul_ps(d, xs),
                                  sums[m]);
      }
      x += rows * kQuantizedRowsBlockBytes;
    }
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    _mm512_storeu_ps(out + m * kSumsStride, sums[m]);
  }
}

// Up to 3 rows.
template <class Block>
WEFT_INLINE void TernaryPanel512(const uint8_t* panel, int64_t depth,
                                 const uint8_t* x, int rows, float* sums) {
  switch (rows) {
    case 1:
      return TernaryRows512<Block, 1>(panel, depth, x, sums);
    case 2:
      return TernaryRows512<Block, 2>(panel, depth, x, sums);
    default:
      return TernaryRows512<Block, 3>(panel, depth, x, sums);
  }
}

struct Kernels512 : Vnni512Kernels {
  template <class Block>
  static void Panel(const uint8_t* panel, int64_t depth, const uint8_t* x,
                    int rows, float* sums) {
    if constexpr (BlockFormat<Block>::kForm == CodeForm::kTernary) {
      TernaryPanel512<Block>(panel, depth, x, rows, sums);
    } else {
      Vnni512Kernels::Panel<Block>(panel, depth, x, rows, sums);
    }
  }
};

}  // namespace
}  // namespace weft

#define WEFT_ISA Avx512Vnni
#define WEFT_KERNELS Kernels512
#define WEFT_IN_REGISTERS
#include "ops/kernels/matmul/panel_entries.inl"

#endif  // __x86_64__
