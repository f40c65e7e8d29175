// One loop for all quantised types over decode_block.h, and a table by type.

#include "ops/dequantize.h"

#include <cstring>

#include "ops/kernels/decode_block.h"
#include "ops/kernels/half.h"

namespace weft {
namespace {

void CopyF32(const void* src, float* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

template <float (*widen)(uint16_t)>
void Widen(const void* src, float* dst, int64_t n) {
  const char* bytes = static_cast<const char*>(src);
  for (int64_t i = 0; i < n; ++i) {
    uint16_t value;
    std::memcpy(&value, bytes + 2 * i, sizeof(value));
    dst[i] = widen(value);
  }
}

template <class Block>
void Dequantize(const void* src, float* dst, int64_t n) {
  const Block* row = static_cast<const Block*>(src);
  Decoded32 block;
  for (int64_t b = 0; b < n / 32; ++b) {
    DecodeBlock(row, b, &block);
    for (int i = 0; i < 32; ++i) {
      dst[32 * b + i] = block.scale[i / 16] * block.q[i] - block.min[i / 16];
    }
  }
}

struct Row {
  DType type;
  DequantizeFunction function;
};

constexpr Row kTable[] = {
    {DType::kF32, CopyF32},
    {DType::kF16, Widen<F16ToF32>},
    {DType::kBF16, Widen<BF16ToF32>},
    {DType::kQ4_0, Dequantize<BlockQ4_0>},
    {DType::kQ4_1, Dequantize<BlockQ4_1>},
    {DType::kQ5_0, Dequantize<BlockQ5_0>},
    {DType::kQ5_1, Dequantize<BlockQ5_1>},
    {DType::kQ8_0, Dequantize<BlockQ8_0>},
    {DType::kQ2_K, Dequantize<BlockQ2_K>},
    {DType::kQ3_K, Dequantize<BlockQ3_K>},
    {DType::kQ4_K, Dequantize<BlockQ4_K>},
    {DType::kQ5_K, Dequantize<BlockQ5_K>},
    {DType::kQ6_K, Dequantize<BlockQ6_K>},
    {DType::kIQ4_NL, Dequantize<BlockIQ4_NL>},
    {DType::kIQ4_XS, Dequantize<BlockIQ4_XS>},
};

}  // namespace

DequantizeFunction DequantizerOf(DType type) {
  for (const Row& row : kTable) {
    if (row.type == type) return row.function;
  }
  return nullptr;
}

bool CanDequantize(DType type) { return DequantizerOf(type) != nullptr; }

void DequantizeRow(DType type, const void* src, float* dst, int64_t n) {
  DequantizerOf(type)(src, dst, n);
}

}  // namespace weft
