// Unicode's normalisation form C (UAX 15), by utf8proc.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// `text` in NFC. Bytes that are no UTF-8 stay as they are, and divide. Of a run
// of more than a hundred combining marks parts are normalised by themselves:
// sorting such a run takes the square of its length.
std::string ToNfc(absl::string_view text);

}  // namespace weft
