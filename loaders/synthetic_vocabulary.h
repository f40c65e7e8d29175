// The vocabulary of a made-up model: see synthesize.h.
#pragma once

#include <cstdint>

#include "loaders/gguf_writer.h"

namespace weft {

// Sets the `tokenizer.*` keys. Requires 259 <= size <= 2^24.
void AddSyntheticVocabulary(int64_t size, GgufWriter* writer);

}  // namespace weft
