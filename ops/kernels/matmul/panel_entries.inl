// The entry point of quantized_isa.h for packed weights on one instruction
// set:
//   WEFT_ISA      as in their names, MatmulPanel16<ISA>
//   WEFT_KERNELS  what panel_driver.h wants
// Included once by the file that is compiled for it.

#include "ops/kernels/matmul/panel_driver.h"
#include "ops/kernels/matmul/quantized_isa.h"

#define WEFT_JOIN2(A, B) A##B
#define WEFT_JOIN(A, B) WEFT_JOIN2(A, B)
#define WEFT_ANY WEFT_JOIN(MatmulPanel16, WEFT_ISA)

namespace weft {

template <class Block>
void WEFT_ANY(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end,
              uint8_t* thread_scratch) {
  PanelMatmul<Block, WEFT_KERNELS>(args, panel_begin, panel_end,
                                   thread_scratch);
}

#define WEFT_INSTANTIATE(TYPE)                                             \
  template void WEFT_ANY<Block##TYPE>(const MatmulArgs&, int64_t, int64_t, \
                                      uint8_t*);
WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_INSTANTIATE)

}  // namespace weft
