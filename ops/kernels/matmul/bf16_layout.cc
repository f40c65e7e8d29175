#include "ops/kernels/matmul/bf16_layout.h"

#include <cstring>
#include <vector>

#include "ops/kernels/half.h"
#include "ops/kernels/matmul/bf16_isa.h"

#if defined(__x86_64__)
#include <oneapi/dnnl/dnnl_version.h>
#define WEFT_TEXT_OF(x) #x
#define WEFT_TEXT(x) WEFT_TEXT_OF(x)
#define WEFT_ONEDNN_VERSION     \
  WEFT_TEXT(DNNL_VERSION_MAJOR) \
  "." WEFT_TEXT(DNNL_VERSION_MINOR) "." WEFT_TEXT(DNNL_VERSION_PATCH)
#else
#define WEFT_ONEDNN_VERSION "none"
#endif

namespace weft {
namespace {

uint16_t Load16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

// The place of one element, in elements.
int64_t Place(int64_t columns, int64_t row, int64_t column) {
  const int64_t group = row / kBf16GroupRows;
  return group * kBf16GroupRows * Bf16PaddedDepth(columns) +
         (column / 2 * kBf16GroupRows + row % kBf16GroupRows) * 2 + column % 2;
}

// Every F16 rounded to BF16: a look-up is several times faster than the sums.
const std::vector<uint16_t>& RoundedF16() {
  static const auto* table = [] {
    auto* t = new std::vector<uint16_t>(1 << 16);
    for (int i = 0; i < 1 << 16; ++i) {
      (*t)[i] = F32ToBF16(F16ToF32(static_cast<uint16_t>(i)));
    }
    return t;
  }();
  return *table;
}

}  // namespace

const char kBf16LayoutName[] = "onednn_bf16_" WEFT_ONEDNN_VERSION;

bool SupportsBf16Layout(DType dtype, int64_t, int64_t) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

int64_t Bf16LayoutBytes(DType, int64_t rows, int64_t columns) {
  const int64_t groups = (rows + kBf16GroupRows - 1) / kBf16GroupRows;
  return groups * Bf16GroupBytes(columns);
}

void PackBf16Layout(DType dtype, int64_t rows, int64_t columns,
                    const std::function<const uint8_t*(int64_t)>& source,
                    uint8_t* packed) {
  uint16_t* out = reinterpret_cast<uint16_t*>(packed);
  std::memset(packed, 0, Bf16LayoutBytes(dtype, rows, columns));
  const uint16_t* rounded =
      dtype == DType::kF16 ? RoundedF16().data() : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* from = source(row);
    uint16_t* to = out + Place(columns, row, 0);
    for (int64_t k = 0; k < columns; ++k) {
      const uint16_t value = Load16(from + 2 * k);
      to[k / 2 * kBf16GroupRows * 2 + k % 2] =
          rounded != nullptr ? rounded[value] : value;
    }
  }
}

void ReadBf16LayoutRow(DType, int64_t, int64_t columns, const uint8_t* packed,
                       int64_t row, float* out) {
  for (int64_t k = 0; k < columns; ++k) {
    out[k] = BF16ToF32(Load16(packed + 2 * Place(columns, row, k)));
  }
}

}  // namespace weft
