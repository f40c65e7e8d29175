// What this build is, in the words of `weft --version` and `weft doctor`.
#pragma once

#include <string>

namespace weft {

// "weft 0.1.0", the commit it was built from (only of packages: see
// tools/package.sh), the instruction set of this machine that kernels use, and
// oneDNN's version: one line.
std::string VersionLine();

}  // namespace weft
