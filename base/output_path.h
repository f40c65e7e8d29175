// Where a file is written that must never stand there half-written: under a
// temporary name beside it, which is renamed when all is done.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft {

struct OutputPath {
  // The file itself: symbolic links are followed, so a link stays a link.
  std::string target;
  // In the same folder, with this process's number in its name.
  std::string temporary;
  // The target is there and is a device, a pipe or a socket: nothing that a
  // rename may replace. It is to be written as it is, or refused.
  bool special = false;
};

// Errors: the path is a directory. That a folder is missing shows when the
// temporary file is opened.
absl::StatusOr<OutputPath> ResolveOutput(const std::string& path);

// The same, but special files are errors: for what is not written from front to
// back.
absl::StatusOr<OutputPath> ResolveRegularOutput(const std::string& path);

}  // namespace weft
