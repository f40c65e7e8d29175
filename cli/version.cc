#include "cli/version.h"

#include "absl/strings/str_cat.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/matmul/onednn_tile.h"

// Set by tools/package.sh: tests of a working copy would be run again for
// every commit otherwise.
#ifndef WEFT_COMMIT
#define WEFT_COMMIT ""
#endif

namespace weft {

std::string VersionLine() {
  const std::string commit = WEFT_COMMIT;
  std::string line = "weft 0.1.0";
  if (!commit.empty()) absl::StrAppend(&line, ", commit ", commit);
  absl::StrAppend(&line, ", ", Name(DetectIsa()));
  absl::StrAppend(&line, ", oneDNN ", OneDnnVersion());
  return line;
}

}  // namespace weft
