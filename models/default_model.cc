#include "models/default_model.h"

extern "C" {
extern const uint8_t weft_default_model_begin[];
extern const uint8_t weft_default_model_end[];
}

namespace weft {

absl::Span<const uint8_t> DefaultModel() {
  return absl::MakeConstSpan(weft_default_model_begin, weft_default_model_end);
}

}  // namespace weft
