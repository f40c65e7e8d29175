// Kernels of the matmul family for products by parts of a weight, such as heads
// or experts, which stand one below the other in it: what the rows of the
// kernel table for these have in common. How many rows of x a part gets is
// known only when it runs, so each takes kernels that together take any number.
#pragma once

#include <functional>
#include <string>

#include "ops/kernels/kernel_table.h"
#include "ops/kernels/matmul/matmul_kernel.h"

namespace weft {

class PartMatmulRow : public KernelEntry {
 public:
  std::string Refuses(const NodeView& view) const override;
  int64_t ThreadScratchBytes(const NodeView& view) const override;

 protected:
  // `part` is what a part is called: the op is `part`_matmul. `quantized` says
  // what rows of x are.
  PartMatmulRow(const std::string& part, MatmulTiles tiles, bool quantized);

  // Rows of the weight that a part has.
  virtual int64_t PartRows(const NodeView& view) const = 0;

  const MatmulTiles& tiles() const { return tiles_; }
  bool quantized() const { return quantized_; }

 private:
  const std::string part_;
  const MatmulTiles tiles_;
  const bool quantized_;
};

// Calls add(tiles, quantized) for all there are, best first.
void ForEachPartMatmul(
    const std::function<void(MatmulTiles tiles, bool quantized)>& add);

}  // namespace weft
