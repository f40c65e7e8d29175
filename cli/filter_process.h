// Another program as a filter: text in, text out.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// Runs `command` (a program's name, looked for on PATH, and its arguments; no
// shell), writes `input` to its standard input and returns what it wrote to its
// standard output. Both at once, so neither side waits for the other. Errors:
// there is no such program (kNotFound), or it failed: with the first line that
// it wrote to standard error. Requires that this process ignores SIGPIPE
// (InstallSignals); the child does not.
absl::StatusOr<std::string> FilterThrough(
    const std::vector<std::string>& command, absl::string_view input);

}  // namespace weft
