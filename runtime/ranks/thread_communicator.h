// Ranks that are threads of one process: for tests.
#pragma once

#include <memory>
#include <vector>

#include "runtime/ranks/communicator.h"

namespace weft {

// One for each rank, to be used by a thread each.
std::vector<std::shared_ptr<Communicator>> ThreadCommunicators(int ranks);

}  // namespace weft
