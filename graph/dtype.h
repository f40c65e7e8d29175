// The element types of values, one row each.
//
// Sizes follow the GGUF specification (ggml-org/ggml docs/gguf.md); the
// quantised types are listed in quantized_types.h, their blocks are in
// ops/formats. Thread-safe: the table is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/quantized_types.h"

namespace weft {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kI32,
#define WEFT_ENUMERATE(TYPE, ...) k##TYPE,
  WEFT_FOR_EACH_QUANTIZED_TYPE(WEFT_ENUMERATE)
#undef WEFT_ENUMERATE
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
