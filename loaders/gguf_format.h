// The numbers of the GGUF format that reader and writer share.
// Source: GGUF specification (ggml-org/ggml docs/gguf.md).
#pragma once

#include <cstdint>

namespace weft {

constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF", little-endian
constexpr uint32_t kGgufVersion = 3;         // the one that is written
constexpr uint32_t kGgufMaxDims = 4;

// `general.alignment`: of the data section and of each tensor in it. The upper
// bound is ours; it keeps sums of an alignment and a file size far from
// wrapping.
constexpr char kGgufAlignmentKey[] = "general.alignment";
constexpr uint64_t kGgufDefaultAlignment = 32;
constexpr uint64_t kGgufMinAlignment = 8;
constexpr uint64_t kGgufMaxAlignment = uint64_t{1} << 30;

constexpr bool IsGgufAlignment(uint64_t alignment) {
  return alignment >= kGgufMinAlignment && alignment <= kGgufMaxAlignment &&
         (alignment & (alignment - 1)) == 0;
}

}  // namespace weft
