// Data that lies beside the repository, not in it: read when it is there.
#pragma once

#include <string>

namespace weft {

// The folder named by an environment variable, else ../shared/`name` beside the
// repository (whose place the real path of `known`, a file that the test has as
// data, tells). May not exist.
std::string SharedFolder(const char* variable, const std::string& name,
                         const std::string& known);

}  // namespace weft
