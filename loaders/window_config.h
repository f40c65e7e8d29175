// Of a model's hyper-parameters how far tokens look: the context, the sliding
// window, which blocks have it, and what their heads are.
#pragma once

#include "absl/status/status.h"
#include "loaders/config_keys.h"
#include "loaders/gguf.h"
#include "loaders/model_config.h"

namespace weft {

// Fills in context_length, trained_context_length, sliding_window,
// sliding_blocks, and lengths of heads in blocks with a window. Of `config`
// there must be the blocks.
absl::Status ReadContextAndWindows(const GgufFile& file,
                                   const ModelTraits& traits,
                                   const ConfigKeys& keys, ModelConfig* config);

}  // namespace weft
