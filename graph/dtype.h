// The element types of values, one row each.
//
// Sizes follow the GGUF specification (ggml-org/ggml docs/gguf.md); block
// layouts are in ops/kernels/blocks.h. Thread-safe: the table is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI32,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  // Activations quantised per row in blocks of 32 for integer kernels
  // (ops/kernels/quantized_rows.h). Never stored in a model file.
  kQ8Rows,
};

struct DTypeInfo {
  DType type;
  // Lower case, as graphs print it; model files and the command line use the
  // same letters in upper case.
  const char* name;
  int gguf_id;  // ggml_type in a GGUF file, -1 when it cannot stand in one.
  int block_elements;  // consecutive elements of a row that share a block
  int block_bytes;
  bool quantized;  // a block type that integer kernels multiply
};

// Never fails: every DType has a row.
const DTypeInfo& Info(DType type);

// All rows, in the order of the enum.
absl::Span<const DTypeInfo> AllDTypes();

// Case does not matter ("q4_0", "Q4_0"). Empty when unknown.
std::optional<DType> DTypeFromName(absl::string_view name);
std::optional<DType> DTypeFromGgufId(uint32_t id);

// Upper-case name, as in model files.
std::string UpperName(DType type);

// Bytes of one row of `elements`. Requires elements % block_elements == 0 and
// elements < 2^40.
int64_t RowBytes(DType type, int64_t elements);

}  // namespace weft
