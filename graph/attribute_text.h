// The text of an attribute's value: one for graph text, errors and
// documentation.
#pragma once

#include <string>

#include "graph/attributes.h"

namespace weft {

// A number always looks like one (1.0), a string always has quotes; so each
// reads back as the value that it was.
std::string ToText(const AttributeValue& value);

}  // namespace weft
