// An entry of the tables of matmul kernels (quantized_matmul.h, dense_matmul.h,
// bf16_matmul.h), and entries that serve different numbers of rows with the
// same weights. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/dtype.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/matmul/matmul.h"

namespace weft {

constexpr int64_t kAnyRows = INT64_MAX;

struct MatmulKernel {
  DType weight;
  // What one pass of the inner loop computes, rows of x times rows of w, and
  // what else tells kernels apart.
  const char* tile;
  Isa isa;
  // Whose code it is, where it is not ours: "onednn".
  const char* library = nullptr;
  // "panel16" (panel16.h, made by pack.h), "rows" (as in the file) or the one
  // of bf16_layout.h.
  const char* layout;
  // The least and most rows of x that the kernel takes.
  int64_t min_rows = 1;
  int64_t max_rows = kAnyRows;
  MatmulFunction run;
  // Bytes of thread_scratch, 64-byte aligned, for this depth; null for none.
  int64_t (*thread_scratch)(int64_t depth) = nullptr;
  // panel_begin is a multiple of this.
  int group_panels = 2;

  // matmul_<weight type>_<tile>_<isa, or library>
  std::string name() const;
  int64_t ThreadScratchBytes(int64_t depth) const {
    return thread_scratch == nullptr ? 0 : thread_scratch(depth);
  }
};

// Kernels of one weight type, layout and instruction set that together take any
// number of rows, for products whose number of rows is known only when they
// run. Kernels for many rows alone are not among them.
class MatmulTiles {
 public:
  // Entries of a table, which must outlive this; one takes any number.
  explicit MatmulTiles(std::vector<const MatmulKernel*> kernels);

  // The one that is for the fewest rows of those that take so many.
  const MatmulKernel& For(int64_t rows) const;
  // The one for any number.
  const MatmulKernel& any() const { return *kernels_.back(); }
  int64_t ThreadScratchBytes(int64_t depth) const;
  // As a kernel's; of several, the layout stands in place of a tile.
  std::string name() const;

 private:
  std::vector<const MatmulKernel*> kernels_;  // by max_rows
};

// A table's kernels for any number of rows and what goes with each, in the
// table's order.
std::vector<MatmulTiles> TilesOf(absl::Span<const MatmulKernel> table);

}  // namespace weft
