// One loop for all quantised types over ops/formats, and a table by type.

#include "ops/dequantize.h"

#include <cstring>

#include "ops/formats/formats.h"
#include "ops/kernels/half.h"

namespace weft {
namespace {

void CopyF32(const void* src, float* dst, int64_t n) {
  if (n == 0) return;  // there may be nothing to point at
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

constexpr Row kTable[] = {{DType::kF32, CopyF32},
                          {DType::kF16, Widen<F16ToF32>},
                          {DType::kBF16, Widen<BF16ToF32>},
#define WEFT_ROW(TYPE, ...) {DType::k##TYPE, Dequantize<Block##TYPE>},
                          WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROW)
#undef WEFT_ROW
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
