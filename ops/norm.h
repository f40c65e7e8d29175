// What the four norms have in common.
#pragma once

#include "ops/attributes.h"

namespace weft {

// Of rms_norm, layer_norm and the two that quantise, which have one head.
NormAttributes NormAttributesOf(const Attributes& attributes);

}  // namespace weft
