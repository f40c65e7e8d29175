// Whether bytes from a file are UTF-8, before they become JSON, a protocol
// buffer string or a name. Thread-safe.
#pragma once

#include "absl/strings/string_view.h"

namespace weft {

bool IsValidUtf8(absl::string_view text);

}  // namespace weft
