#include "ops/kernels/matmul/matmul_kernel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

std::string NameOf(const MatmulKernel& kernel, absl::string_view tile) {
  return absl::StrCat(
      "matmul_", Info(kernel.weight).name, "_", tile, "_",
      kernel.library != nullptr ? kernel.library : Name(kernel.isa));
}

}  // namespace

std::string MatmulKernel::name() const { return NameOf(*this, tile); }

MatmulTiles::MatmulTiles(std::vector<const MatmulKernel*> kernels)
    : kernels_(std::move(kernels)) {
  std::stable_sort(kernels_.begin(), kernels_.end(),
                   [](const MatmulKernel* a, const MatmulKernel* b) {
                     return a->max_rows < b->max_rows;
                   });
}

const MatmulKernel& MatmulTiles::For(int64_t rows) const {
  for (const MatmulKernel* kernel : kernels_) {
    if (rows <= kernel->max_rows) return *kernel;
  }
  return any();
}

int64_t MatmulTiles::ThreadScratchBytes(int64_t depth) const {
  int64_t bytes = 0;
  for (const MatmulKernel* kernel : kernels_) {
    bytes = std::max(bytes, kernel->ThreadScratchBytes(depth));
  }
  return bytes;
}

std::string MatmulTiles::name() const {
  return kernels_.size() == 1 ? any().name() : NameOf(any(), any().layout);
}

std::vector<MatmulTiles> TilesOf(absl::Span<const MatmulKernel> table) {
  std::vector<MatmulTiles> tiles;
  for (const MatmulKernel& any : table) {
    if (any.max_rows != kAnyRows || any.min_rows > 1) continue;
    std::vector<const MatmulKernel*> together;
    for (const MatmulKernel& other : table) {
      if (other.weight == any.weight && other.isa == any.isa &&
          absl::string_view(other.layout) == any.layout &&
          (&other == &any || other.max_rows != kAnyRows)) {
        together.push_back(&other);
      }
    }
    tiles.push_back(MatmulTiles(std::move(together)));
  }
  return tiles;
}

}  // namespace weft
