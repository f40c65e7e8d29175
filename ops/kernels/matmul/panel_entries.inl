// The entry points of quantized_isa.h for packed weights on one instruction
// set:
//   WEFT_ISA           as in their names, Panel16Single<ISA>
//   WEFT_KERNELS       what panel_driver.h wants
//   WEFT_IN_REGISTERS  defined if they have PackedTile
// Included once by the file that is compiled for it.

#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"

#define WEFT_JOIN2(A, B) A##B
#define WEFT_JOIN(A, B) WEFT_JOIN2(A, B)
#define WEFT_SINGLE WEFT_JOIN(Panel16Single, WEFT_ISA)
#define WEFT_PACKED WEFT_JOIN(Panel16Packed, WEFT_ISA)
#define WEFT_UNPACKED WEFT_JOIN(Panel16Unpacked, WEFT_ISA)

namespace weft {

template <class Block>
void WEFT_SINGLE(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                 uint8_t*) {
  PanelMatmulSingle<Block, WEFT_KERNELS>(args, panel_begin, panel_end);
}

template <class Block>
void WEFT_UNPACKED(const MatmulArgs& args, int64_t panel_begin,
                   int64_t panel_end, uint8_t* thread_scratch) {
  PanelMatmulTiles<Block, WEFT_KERNELS, true>(args, panel_begin, panel_end,
                                              thread_scratch);
}

#define WEFT_INSTANTIATE_ONE(FUNCTION, BLOCK) \
  template void FUNCTION<BLOCK>(const MatmulArgs&, int64_t, int64_t, uint8_t*);
#define WEFT_INSTANTIATE(TYPE, ...)              \
  WEFT_INSTANTIATE_ONE(WEFT_SINGLE, Block##TYPE) \
  WEFT_INSTANTIATE_ONE(WEFT_UNPACKED, Block##TYPE)
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)

#if defined(WEFT_IN_REGISTERS)

template <class Block>
void WEFT_PACKED(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
                 uint8_t*) {
  // Of other types nobody has it.
  if constexpr (BlockFormat<Block>::kTilesUnpack) {
    PanelMatmulTiles<Block, WEFT_KERNELS, false>(args, panel_begin, panel_end,
                                                 nullptr);
  }
}

#define WEFT_INSTANTIATE_PACKED(TYPE, ...) \
  WEFT_INSTANTIATE_ONE(WEFT_PACKED, Block##TYPE)
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE_PACKED)

#endif  // WEFT_IN_REGISTERS

}  // namespace weft
