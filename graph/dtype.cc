#include "graph/dtype.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace weft {
namespace {

constexpr DTypeInfo kTable[] = {
    {DType::kF32, "f32", 0, 1, 4, false},
    {DType::kF16, "f16", 1, 1, 2, false},
    {DType::kBF16, "bf16", 30, 1, 2, false},
    {DType::kI32, "i32", 26, 1, 4, false},
    {DType::kQ4_0, "q4_0", 2, 32, 18, true},
    {DType::kQ4_1, "q4_1", 3, 32, 20, true},
    {DType::kQ5_0, "q5_0", 6, 32, 22, true},
    {DType::kQ5_1, "q5_1", 7, 32, 24, true},
    {DType::kQ8_0, "q8_0", 8, 32, 34, true},
    {DType::kQ2_K, "q2_k", 10, 256, 84, true},
    {DType::kQ3_K, "q3_k", 11, 256, 110, true},
    {DType::kQ4_K, "q4_k", 12, 256, 144, true},
    {DType::kQ5_K, "q5_k", 13, 256, 176, true},
    {DType::kQ6_K, "q6_k", 14, 256, 210, true},
    {DType::kIQ4_NL, "iq4_nl", 20, 32, 18, true},
    {DType::kIQ4_XS, "iq4_xs", 23, 256, 136, true},
    // 32 int8, a scale, scale * sum, two sums of 16: 48 bytes per block.
    {DType::kQ8Rows, "q8r", -1, 32, 48, false},
};

}  // namespace

const DTypeInfo& Info(DType type) { return kTable[static_cast<int>(type)]; }

absl::Span<const DTypeInfo> AllDTypes() { return kTable; }

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (const DTypeInfo& row : kTable) {
    if (absl::EqualsIgnoreCase(row.name, name)) return row.type;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromGgufId(uint32_t id) {
  for (const DTypeInfo& row : kTable) {
    if (row.gguf_id >= 0 && static_cast<uint32_t>(row.gguf_id) == id) {
      return row.type;
    }
  }
  return std::nullopt;
}

std::string UpperName(DType type) {
  return absl::AsciiStrToUpper(Info(type).name);
}

int64_t RowBytes(DType type, int64_t elements) {
  const DTypeInfo& info = Info(type);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace weft
