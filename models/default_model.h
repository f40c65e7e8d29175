// The model that is compiled into the binary: see README.md beside this.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// A GGUF file, 64-byte aligned; lives as long as the process.
absl::Span<const uint8_t> DefaultModel();

constexpr char kDefaultModelName[] = "(embedded model)";

}  // namespace weft
