#include "ops/kernels/matmul/pack_dense.h"

#include <cstring>

#include "ops/kernels/half.h"

namespace weft {
namespace {

constexpr int kLanes = 16;

template <class Element>
void Interleave(const uint8_t* const rows[16], int64_t depth, uint8_t* dst) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int64_t k = 0; k < depth; ++k) {
      Element value = 0;
      if (rows[lane] != nullptr) {
        std::memcpy(&value, rows[lane] + k * sizeof(Element), sizeof(value));
      }
      std::memcpy(dst + (k * kLanes + lane) * sizeof(Element), &value,
                  sizeof(value));
    }
  }
}

}  // namespace

int64_t DensePanelBytes(DType type, int64_t depth) {
  return RowBytes(type, depth) * kLanes;
}

void PackDensePanel(DType type, const uint8_t* const rows[16], int64_t depth,
                    uint8_t* dst) {
  if (type == DType::kF32) {
    Interleave<uint32_t>(rows, depth, dst);
  } else {
    Interleave<uint16_t>(rows, depth, dst);
  }
}

void UnpackDenseRow(DType type, const uint8_t* packed, int64_t depth,
                    int64_t row, float* dst) {
  const uint8_t* panel = packed + row / kLanes * DensePanelBytes(type, depth);
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t index = k * kLanes + row % kLanes;
    if (type == DType::kF32) {
      std::memcpy(dst + k, panel + index * 4, 4);
    } else {
      uint16_t half;
      std::memcpy(&half, panel + index * 2, 2);
      dst[k] = type == DType::kF16 ? F16ToF32(half) : BF16ToF32(half);
    }
  }
}

}  // namespace weft
