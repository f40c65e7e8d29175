// One line per kernel, for every weight type.

#include "ops/kernels/matmul/quantized_matmul.h"

#include "ops/kernels/matmul/panel16.h"
#include "ops/kernels/matmul/quantized_isa.h"

namespace weft {

#if defined(__x86_64__)
// As Panel16SingleAvx512Vnni, to the bit, and faster where the processor has
// VBMI and GFNI too; for codebooks whose indices have up to nine bits
// (matmul_panel16_avx512vbmi.cc).
template <class Block>
void Panel16SingleAvx512Vbmi(const MatmulArgs& args, int64_t panel_begin,
                             int64_t panel_end, uint8_t* thread_scratch);
#endif

namespace {

using Table = std::vector<MatmulKernel>;

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
template <class Block>
MatmulFunction SingleAvx512Vnni() {
  if constexpr (BlockFormat<Block>::kForm == CodeForm::kGrid) {
    if constexpr (BlockFormat<Block>::Codebook::kIndexBits <= 9) {
      __builtin_cpu_init();
      if (__builtin_cpu_supports("avx512vbmi") &&
          __builtin_cpu_supports("gfni")) {
        return Panel16SingleAvx512Vbmi<Block>;
      }
    }
  }
  return Panel16SingleAvx512Vnni<Block>;
}
#endif

// Four unpacked panels: kGateQuantize finishes them together.
template <class Block, bool as_signed = false>
int64_t UnpackedScratch(int64_t depth) {
  return 2 * UnpackedPairBytes<Block, as_signed>(depth);
}

#define WEFT_KERNEL(TILE, ISA, LAYOUT, ...) \
  table.push_back({.weight = weight,        \
                   .tile = TILE,            \
                   .isa = Isa::ISA,         \
                   .layout = LAYOUT,        \
                   __VA_ARGS__})

// Limits of rows were measured on AMX, on AVX-512 VNNI, and on AVX2 for the
// loops over unpacked bytes that the others share (benchmarks/NOTES.md).
template <class Block>
void AddKernels(DType weight, Table& table) {
  constexpr auto scratch = UnpackedScratch<Block>;
  // clang-format off
#if defined(__x86_64__)
  constexpr int64_t few = BlockFormat<Block>::kBlocks > 1 ? 3 : 2;
  if (BlockFormat<Block>::kScalesPer32 == 1) {
    constexpr auto signed_scratch = UnpackedScratch<Block, true>;
    WEFT_KERNEL("12x32_unpacked", kAvx512Amx, "panel16", .min_rows = 33, .run = Panel16UnpackedAvx512Amx<Block>, .thread_scratch = signed_scratch);
  }
  WEFT_KERNEL("3x16", kAvx512Vnni, "panel16", .max_rows = few, .run = SingleAvx512Vnni<Block>());
  if (BlockFormat<Block>::kTilesUnpack) {
    WEFT_KERNEL("6x32", kAvx512Vnni, "panel16", .max_rows = 32, .run = Panel16PackedAvx512Vnni<Block>);
  }
  WEFT_KERNEL("6x32_unpacked", kAvx512Vnni, "panel16", .run = Panel16UnpackedAvx512Vnni<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("6x16", kAvx512, "panel16", .max_rows = 8, .run = Panel16SingleAvx512<Block>);
  WEFT_KERNEL("6x32_unpacked", kAvx512, "panel16", .run = Panel16UnpackedAvx512<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("6x16", kAvx2Vnni, "panel16", .max_rows = 8, .run = Panel16SingleAvx2Vnni<Block>);
  WEFT_KERNEL("6x32_unpacked", kAvx2Vnni, "panel16", .run = Panel16UnpackedAvx2Vnni<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("6x16", kAvx2, "panel16", .max_rows = 8, .run = Panel16SingleAvx2<Block>);
  WEFT_KERNEL("6x32_unpacked", kAvx2, "panel16", .run = Panel16UnpackedAvx2<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("rows", kAvx2, "rows", .run = MatmulRowsAvx2<Block>);
#else
  WEFT_KERNEL("6x16", kNeonI8mm, "panel16", .max_rows = 8, .run = Panel16SingleNeonI8mm<Block>);
  WEFT_KERNEL("6x32_unpacked", kNeonI8mm, "panel16", .run = Panel16UnpackedNeonI8mm<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("6x16", kNeonDot, "panel16", .max_rows = 8, .run = Panel16SingleNeonDot<Block>);
  WEFT_KERNEL("6x32_unpacked", kNeonDot, "panel16", .run = Panel16UnpackedNeonDot<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("6x16", kNeon, "panel16", .max_rows = 8, .run = Panel16SingleNeon<Block>);
  WEFT_KERNEL("6x32_unpacked", kNeon, "panel16", .run = Panel16UnpackedNeon<Block>, .thread_scratch = scratch);
  WEFT_KERNEL("rows", kNeon, "rows", .run = MatmulRowsNeon<Block>);
#endif
  // clang-format on
}

#undef WEFT_KERNEL

Table MakeTable() {
  Table table;
#define WEFT_ADD(TYPE, ...) AddKernels<Block##TYPE>(DType::k##TYPE, table);
  WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ADD)
#undef WEFT_ADD
  return table;
}

#else

Table MakeTable() { return {}; }

#endif

}  // namespace

absl::Span<const MatmulKernel> QuantizedMatmulKernels() {
  static const auto* table = new Table(MakeTable());
  return *table;
}

}  // namespace weft
