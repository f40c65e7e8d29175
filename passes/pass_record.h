// What a plan keeps of each pass that ran.
#pragma once

#include <string>

namespace weft {

struct PassRecord {
  std::string name;
  int nodes_before = 0;
  int nodes_after = 0;
  double seconds = 0;
};

}  // namespace weft
