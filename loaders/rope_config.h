// Of a model's hyper-parameters those of rotation: which elements of a head
// turn, how fast, and how that is stretched to longer contexts (linear scaling,
// YaRN, longrope).
#pragma once

#include "absl/status/status.h"
#include "loaders/config_keys.h"
#include "loaders/gguf.h"
#include "loaders/model_config.h"

namespace weft {

// Fills in rope_* and original_context_length. Of `config` there must be heads
// and context. Nothing where the architecture does not rotate.
absl::Status ReadRope(const GgufFile& file, const ModelTraits& traits,
                      const ConfigKeys& keys, ModelConfig* config);

}  // namespace weft
