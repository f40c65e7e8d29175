// Matmuls by oneDNN, on the weights that the project's own kernels read.
//
// What was measured with oneDNN 2.6.3 on AVX-512 (one thread; 64 and 512 rows,
// depth 768, 2048 and 5632, 2048 outputs):
//   - F32 weights in panel16 are its layout BA16a16b where the depth is a
//     multiple of 16. Its brgemm kernel sums in exactly the order of
//     dense_isa.h, for every depth from 64 to 5632 and number of rows tried,
//     whatever the layout: own kernels and oneDNN give the same bits.
//   - Rate on panel16: 160-209 Gflop/s, the own kernel 213-241. 64-wide panels
//     would bring oneDNN to 196-249, no more than the own kernel. So the own
//     kernel comes first; this one is a check and an alternative.
//   - BF16 weights with activations rounded to BF16 reach 430-525 Gflop/s in
//     64-wide panels of pairs (BA16a64b2a), twice what f32 arithmetic can.
//   - A run-time number of rows, or rows with gaps, falls back to other
//     kernels (gemm:jit, ref:any). Hence one primitive per number of rows
//     (about 40 us to make), and matrices without gaps.
//
// Create refuses, with the reason, what would not run on brgemm or would not
// have the promised bits. Parallel inside by OpenMP over omp_get_max_threads().
// Not thread-safe: one Run at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/dtype.h"

namespace weft {

// As in "2.6.3"; a layout of one version is refused on another.
std::string OneDnnVersion();

class OneDnnMatmul {
 public:
  struct Options {
    // kF32: panel16 of pack_dense.h. kBF16: the layout of PackBF16; x is
    // rounded to BF16 (not what the f32 kernels compute).
    DType type;
    int64_t weight_rows;
    int64_t depth;  // kF32: a multiple of 16; kBF16: of 32
    int64_t max_rows;
    const uint8_t* weight;  // 64-byte aligned; the caller keeps it
  };

  // Bytes of a packed BF16 weight, and packing it from rows as in the file.
  static absl::StatusOr<int64_t> PackedBF16Bytes(int64_t weight_rows,
                                                 int64_t depth);
  static absl::Status PackBF16(const uint8_t* rows, int64_t weight_rows,
                               int64_t depth, uint8_t* dst);

  // kFailedPrecondition says why oneDNN is not taken.
  static absl::StatusOr<std::unique_ptr<OneDnnMatmul>> Create(
      const Options& options);
  ~OneDnnMatmul();

  // Makes the primitive for this number of rows, so that Run need not.
  absl::Status Prepare(int64_t rows);

  // y[rows, weight_rows] = x[rows, depth] * w, rows without gaps. Allocates a
  // few small objects inside oneDNN. Requires rows <= max_rows.
  absl::Status Run(const float* x, int64_t rows, float* y);

 private:
  struct Impl;
  explicit OneDnnMatmul(std::unique_ptr<Impl> impl);
  absl::Status CheckOrder();

  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
