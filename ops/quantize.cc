// Checks a row once, then hands it to the type's function.

#include "ops/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/formats/formats.h"

namespace weft {
namespace {

// What a value may be: float16 values and scales, and rounding to bfloat16,
// become infinite beyond these.
constexpr float kLargestF16 = 65504.0f;
constexpr float kLargestBF16 = 0x1.fep127f;
constexpr float kLargestF32 = std::numeric_limits<float>::max();

void CopyF32(const float* src, const float*, void* dst, int64_t n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

template <uint16_t (*narrow)(float)>
void Narrow(const float* src, const float*, void* dst, int64_t n) {
  char* bytes = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t value = narrow(src[i]);
    std::memcpy(bytes + 2 * i, &value, sizeof(value));
  }
}

template <class Block>
void Encode(const float* src, const float* importance, void* dst, int64_t n) {
  quantize::EncodeRow(src, importance, static_cast<Block*>(dst), n);
}

// The largest scale of NVFP4 times the largest level.
template <class Block>
constexpr float kLargestOf = kLargestF16;
template <>
constexpr float kLargestOf<BlockNVFP4> = 448.0f * 6.0f;

struct Row {
  DType type;
  void (*function)(const float* src, const float* importance, void* dst,
                   int64_t n);
  float largest;
};

constexpr Row kTable[] = {{DType::kF32, CopyF32, kLargestF32},
                          {DType::kF16, Narrow<F32ToF16>, kLargestF16},
                          {DType::kBF16, Narrow<F32ToBF16>, kLargestBF16},
#define WEFT_ROW(TYPE, ...) \
  {DType::k##TYPE, Encode<Block##TYPE>, kLargestOf<Block##TYPE>},
                          WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROW)
#undef WEFT_ROW
};

}  // namespace

absl::Status QuantizeRow(DType type, const float* src, void* dst, int64_t n,
                         const float* importance) {
  const Row* found = nullptr;
  for (const Row& row : kTable) {
    if (row.type == type) found = &row;
  }
  const DTypeInfo& info = Info(type);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot quantise to ", info.name, ": choose a type that weights have"));
  }
  if (n % info.block_elements != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("row of ", n, " elements is not a multiple of the ",
                     info.name, " block of ", info.block_elements,
                     ": choose another type for this tensor"));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(src[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::isnan(src[i]) ? "NaN" : "infinity", ": element ", i,
          ": the source weights are damaged, they must be finite"));
    }
    if (std::fabs(src[i]) > found->largest) {
      return absl::InvalidArgumentError(
          absl::StrCat("value ", src[i], " exceeds ", found->largest,
                       ": element ", i, ": keep this tensor in f32"));
    }
  }
  found->function(src, importance, dst, n);
  return absl::OkStatus();
}

}  // namespace weft
