// The records of weft's ops, defined one family per file. Operands, attributes
// and meaning of each: README.md beside this file, which `weft dump --list-ops`
// prints.
#pragma once

#include "ops/attributes.h"
#include "ops/op.h"

namespace weft {

#define WEFT_OP(name) extern const OpDef name;
#include "ops/op_list.h"
#undef WEFT_OP

}  // namespace weft
