// The families, as family_list.h has them: each makes its tables.
#pragma once

#include "loaders/convert/family.h"

namespace weft {

#define WEFT_FAMILY(NAME) Family NAME();
#include "loaders/convert/family_list.h"
#undef WEFT_FAMILY

}  // namespace weft
