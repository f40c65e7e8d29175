// The architectures of architecture_list.h; the files beside this define them.
#pragma once

#include "loaders/architectures/architecture.h"

namespace weft {

#define WEFT_ARCHITECTURE(name) extern const Architecture name;
#include "loaders/architectures/architecture_list.h"
#undef WEFT_ARCHITECTURE

}  // namespace weft
