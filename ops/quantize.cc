// Checks a row once, then hands it to the type's function.

#include "ops/quantize.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/quantize/families.h"

namespace weft {
namespace {

// What a value may be: float16 values and scales, and rounding to bfloat16,
// become infinite beyond these.
constexpr float kLargestF16 = 65504.0f;
constexpr float kLargestBF16 = 0x1.fep127f;
constexpr float kLargestF32 = std::numeric_limits<float>::max();

struct Row {
  DType type;
  void (*function)(const float* src, void* dst, int64_t n);
  float largest;
};

constexpr Row kTable[] = {
    {DType::kF32, quantize::ToF32, kLargestF32},
    {DType::kF16, quantize::ToF16, kLargestF16},
    {DType::kBF16, quantize::ToBF16, kLargestBF16},
    {DType::kQ4_0, quantize::ToQ4_0, kLargestF16},
    {DType::kQ4_1, quantize::ToQ4_1, kLargestF16},
    {DType::kQ5_0, quantize::ToQ5_0, kLargestF16},
    {DType::kQ5_1, quantize::ToQ5_1, kLargestF16},
    {DType::kQ8_0, quantize::ToQ8_0, kLargestF16},
    {DType::kQ2_K, quantize::ToQ2_K, kLargestF16},
    {DType::kQ3_K, quantize::ToQ3_K, kLargestF16},
    {DType::kQ4_K, quantize::ToQ4_K, kLargestF16},
    {DType::kQ5_K, quantize::ToQ5_K, kLargestF16},
    {DType::kQ6_K, quantize::ToQ6_K, kLargestF16},
    {DType::kIQ4_NL, quantize::ToIQ4_NL, kLargestF16},
    {DType::kIQ4_XS, quantize::ToIQ4_XS, kLargestF16},
};

}  // namespace

absl::Status QuantizeRow(DType type, const float* src, void* dst, int64_t n) {
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
  found->function(src, dst, n);
  return absl::OkStatus();
}

}  // namespace weft
