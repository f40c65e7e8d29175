// Packed quantised weights on AMX: products of whole tiles of bytes (Intel SDM,
// volume 2: LDTILECFG, TILELOADD, TDPBSSD, TILESTORED, TILERELEASE; volume 1,
// chapter "Programming with Intel Advanced Matrix Extensions").
//
// tdpbssd adds to rows x 16 integers the products of rows x 32 bytes of x by 32
// x 16 bytes of weights. Eight groups of a panel are that operand as they lie,
// and have to be signed as x is: then no offset is left to subtract. Sums leave
// tile registers only through memory; the floats after that are the vectors',
// in the order of matmul.h.
//
// What bounds the loop: while products of tiles are under way, float
// instructions of 512 bits find one port instead of two (one tdpbssd among 144
// FMAs doubles their time; integer additions keep both). A block's products
// cost nothing beside its three or four float instructions per 16 sums, which
// take twice as long as behind vpdpbusd. Types with a scale per 16 columns have
// twice as many of them and are left to vnni512.h, and so are few rows, which
// do not pay for unpacking.
//
// A tilestored takes 16 cycles whatever the number of rows, so a tile has 12
// rows, two tiles of quantised rows, put together in L1 some blocks ahead.
// Tiles are cleared before operands are loaded: a tilezero between its tile's
// last product and the next waits for the product.

#if defined(__x86_64__)

#include "ops/kernels/matmul/ordered512.h"
#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"
#include "ops/kernels/matmul/tile_fields.h"

namespace weft {
namespace {

constexpr int kTileRows = 2 * kQuantizedRowsTile;

// Tile registers: sums of two panels, rows of x, quants of two panels.
enum TileRegister { kSums, kSumsBeside, kX, kQuants, kQuantsBeside, kTiles };

// The operand of ldtilecfg, palette 1.
struct alignas(64) TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "as the processor reads it");

// While one lives, the tile registers of its thread are in use. Released, they
// cost nothing when threads change.
class TileSession {
 public:
  TileSession() {
    TileConfig config = {};
    config.palette = 1;
    for (int i = 0; i < kTiles; ++i) {
      const bool weights = i == kQuants || i == kQuantsBeside;
      config.rows[i] = weights ? 8 : kTileRows;
      config.row_bytes[i] = i == kX ? 32 : 64;
    }
    // The intrinsic of GCC 12 names only the first bytes as its operand.
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
  }
  ~TileSession() { __asm__ volatile("tilerelease"); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

template <TileRegister tile>
WEFT_INLINE void LoadTile(const uint8_t* p, int64_t row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1),%%tmm%c2"
                   :
                   : "r"(p), "r"(row_bytes), "i"(tile)
                   : "memory");
}
template <TileRegister tile>
WEFT_INLINE void StoreTile(int32_t* p) {
  __asm__ volatile("tilestored %%tmm%c2,(%0,%1,1)"
                   :
                   : "r"(p), "r"(int64_t{64}), "i"(tile)
                   : "memory");
}
template <TileRegister tile>
WEFT_INLINE void ClearTile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <TileRegister sums, TileRegister x, TileRegister weights>
WEFT_INLINE void MultiplyTiles() {
  __asm__ volatile("tdpbssd %%tmm%c2,%%tmm%c1,%%tmm%c0"
                   :
                   : "i"(sums), "i"(x), "i"(weights));
}

// The numbers of a block, 32 of each row.
template <int rows>
WEFT_INLINE void CopyRows(const uint8_t* x, uint8_t* to) {
  WEFT_UNROLL for (int m = 0; m + 2 <= rows; m += 2) {
    _mm512_storeu_si512(to + 32 * m, _mm512_loadu_si512(x + 32 * m));
  }
  if (rows % 2 == 1) {
    constexpr int64_t last = 32 * (rows - 1);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(to + last),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + last)));
  }
}

// One scale per 32 columns.
template <bool has_min, int rows>
__attribute__((noinline)) void TileAmx(const TileCall& call) {
  // Of the first tile of quantised rows and of the second.
  constexpr int first = rows < kQuantizedRowsTile ? rows : kQuantizedRowsTile;
  constexpr int second = rows - first;
  constexpr int64_t first_bytes = first * kQuantizedRowsBlockBytes;
  constexpr int64_t second_bytes = second * kQuantizedRowsBlockBytes;
  // Blocks between a copy and its use: a tile is not loaded from stores that
  // are still on their way.
  constexpr int64_t ahead = 3;
  alignas(64) uint8_t copies[ahead + 1][kTileRows * 32];
  // Of this block and of the next, by turns.
  alignas(64) int32_t dots[2][2][kTileRows * 16];
  const int64_t blocks = call.blocks;
  const uint8_t* x = call.x;
  const uint8_t* beside = x + blocks * first_bytes;

  const auto copy = [&](int64_t b) __attribute__((always_inline)) {
    uint8_t* to = copies[b % (ahead + 1)];
    CopyRows<first>(x + b * first_bytes, to);
    if constexpr (second > 0) {
      CopyRows<second>(beside + b * second_bytes, to + 32 * first);
    }
  };
  const auto multiply = [&](int64_t b) __attribute__((always_inline)) {
    ClearTile<kSums>();
    ClearTile<kSumsBeside>();
    LoadTile<kX>(copies[b % (ahead + 1)], 32);
    LoadTile<kQuants>(call.unpacked.quants[0] + 512 * b, 64);
    LoadTile<kQuantsBeside>(call.unpacked.quants[1] + 512 * b, 64);
    MultiplyTiles<kSums, kX, kQuants>();
    MultiplyTiles<kSumsBeside, kX, kQuantsBeside>();
    StoreTile<kSums>(dots[b % 2][0]);
    StoreTile<kSumsBeside>(dots[b % 2][1]);
  };

  __m512 sums[rows][2];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    sums[m][0] = _mm512_setzero_ps();
    sums[m][1] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < ahead && b < blocks; ++b) copy(b);
  multiply(0);
  const float* scales = call.unpacked.scales;
  const uint8_t* prefetch = call.prefetch;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t o = 0; o < call.prefetch_step; o += 64) {
      __asm__ volatile("prefetcht1 %0" : : "m"(prefetch[o]));
    }
    prefetch += call.prefetch_step;
    if (b + ahead < blocks) copy(b + ahead);
    if (b + 1 < blocks) multiply(b + 1);
    const TileFields low = FieldsOf(x + b * first_bytes, first, 0);
    const TileFields high = FieldsOf(beside + b * second_bytes, second, 0);
    const __m512 scale_a = _mm512_load_ps(scales);
    const __m512 scale_b = _mm512_load_ps(scales + 16);
    const int32_t(*dot)[kTileRows * 16] = dots[b % 2];
    WEFT_UNROLL for (int m = 0; m < rows; ++m) {
      const TileFields& fields = m < first ? low : high;
      const int at = m < first ? m : m - first;
      const __m512 xs = BroadcastFloat(fields.scale + at);
      const __m512 dot_a = ConvertOrdered(dot[0] + 16 * m);
      const __m512 dot_b = ConvertOrdered(dot[1] + 16 * m);
      FmaOrdered(sums[m][0], dot_a, MultiplyOrdered(scale_a, xs));
      FmaOrdered(sums[m][1], dot_b, MultiplyOrdered(scale_b, xs));
      if (has_min) {
        const __m512 xsum = BroadcastFloat(fields.scaled_sum + at);
        FmaOrdered(sums[m][0], xsum, scales + 32);
        FmaOrdered(sums[m][1], xsum, scales + 48);
      }
    }
    scales += has_min ? 64 : 32;
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    _mm512_storeu_ps(call.sums + m * kSumsStride, sums[m][0]);
    _mm512_storeu_ps(call.sums + m * kSumsStride + 16, sums[m][1]);
  }
}

// The function for so many rows.
template <bool has_min, int rows = kTileRows>
WEFT_INLINE void TileOfRows(const TileCall& call, int wanted) {
  if constexpr (rows > 1) {
    if (wanted < rows) return TileOfRows<has_min, rows - 1>(call, wanted);
  }
  TileAmx<has_min, rows>(call);
}

struct AmxKernels {
  static constexpr int kTileRows = weft::kTileRows;
  static constexpr bool kSignedQuants = true;
  using Session = TileSession;

  template <class Block>
  static void Tile(const TileCall& call, int rows) {
    TileOfRows<BlockFormat<Block>::kHasMin>(call, rows);
  }
};

}  // namespace

template <class Block>
void Panel16UnpackedAvx512Amx(const MatmulArgs& args, int64_t panel_begin,
                              int64_t panel_end, uint8_t* thread_scratch) {
  // Of other types nobody has it.
  if constexpr (BlockFormat<Block>::kScalesPer32 == 1) {
    PanelMatmulTiles<Block, AmxKernels, true>(args, panel_begin, panel_end,
                                              thread_scratch);
  }
}

#define WEFT_INSTANTIATE(TYPE, ...)                    \
  template void Panel16UnpackedAvx512Amx<Block##TYPE>( \
      const MatmulArgs&, int64_t, int64_t, uint8_t*);
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)

}  // namespace weft

#endif  // __x86_64__
