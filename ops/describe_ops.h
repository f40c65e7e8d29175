// The vocabulary for people: every op from its record.
#pragma once

#include <string>

namespace weft {

// Markdown: primitives first, then what passes make; of each its operands,
// result and attributes with what they may be. The file README.md here is this
// text of weft's own ops.
std::string DescribeOps();

}  // namespace weft
