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
#define WEFT_ROW(TYPE, NAME, ID, ELEMENTS, BYTES, ...) \
  {DType::k##TYPE, NAME, ID, ELEMENTS, BYTES, true},
    WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ROW)
#undef WEFT_ROW
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
