// Random quantised weights and activations for tests and benchmarks of integer
// matmuls, and the plain loop that every kernel must equal to the bit.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "graph/dtype.h"
#include "ops/kernels/matmul/matmul.h"
#include "ops/kernels/matmul/quantized_matmul.h"

namespace weft {

// 64-byte aligned bytes.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes);
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  float* floats() { return reinterpret_cast<float*>(data_); }

 private:
  std::vector<uint8_t> storage_;
  uint8_t* data_;
};

// All quantised weight types.
std::vector<DType> QuantizedTypes();

// GGUF rows of random codes; float16 scales of either sign near 2^-7.
std::vector<uint8_t> RandomWeight(DType type, int64_t rows, int64_t depth,
                                  std::mt19937& random);

// The same with every other byte, sub-scales included, equal to `fill`.
std::vector<uint8_t> FilledWeight(DType type, int64_t rows, int64_t depth,
                                  uint8_t fill, std::mt19937& random);

// Rows of x with one block of zeros and one of large values.
std::vector<float> RandomFloats(int64_t rows, int64_t depth,
                                std::mt19937& random);

// The first `rows` rows of x as quantised rows (quantized_rows.h).
AlignedBytes QuantizeRows(const std::vector<float>& x, int64_t rows,
                          int64_t depth);

// Plain packing of consecutive rows.
AlignedBytes PackRows(DType type, const std::vector<uint8_t>& weight,
                      int64_t rows, int64_t depth);
// Panels of gate and up in turn; both have `rows` rows.
AlignedBytes PackGateUp(DType type, const std::vector<uint8_t>& gate,
                        const std::vector<uint8_t>& up, int64_t rows,
                        int64_t depth);

// sums[m * weight_rows + n] in the order of matmul.h, one element at a time.
std::vector<float> ReferenceSums(DType type, const std::vector<uint8_t>& weight,
                                 int64_t weight_rows,
                                 const std::vector<float>& x, int64_t rows,
                                 int64_t depth);

// The same in double, and the sum of magnitudes of the products.
struct ExactSum {
  double value;
  double magnitude;
};
ExactSum ExactDot(DType type, const std::vector<uint8_t>& weight, int64_t n,
                  const std::vector<float>& x, int64_t m, int64_t depth);

// silu(gate) * up for one element.
float ReferenceGate(GateActivation activation, float gate, float up);

// Kernels that this machine can run.
std::vector<MatmulKernel> RunnableKernels();

}  // namespace weft
