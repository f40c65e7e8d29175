// One line per architecture; the files beside this define them.
#pragma once

#include "loaders/architectures/architecture.h"

namespace weft {

extern const Architecture kLlama;
extern const Architecture kQwen2Moe;
extern const Architecture kBert;

}  // namespace weft
