// The passes of weft, each a function of its own file. Only the pipeline and
// tests that run one by hand need to know them.
#pragma once

#include "passes/pass.h"

namespace weft {

#define WEFT_PASS(name, function, ...) \
  absl::Status function(Graph& graph, const PassOptions& options);
#include "passes/pass_list.h"
#undef WEFT_PASS

}  // namespace weft
