// The difference of two texts, line by line, in the unified format.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// Empty when the texts are equal. A shortest edit, by longest common
// subsequence (Hunt and McIlroy 1976), three lines of context. Time and memory
// grow with the product of the parts that are not equal at both ends; where
// that is beyond 2^28 the parts count as wholly different.
std::string UnifiedDiff(const std::vector<absl::string_view>& before,
                        const std::vector<absl::string_view>& after,
                        absl::string_view before_label,
                        absl::string_view after_label);

}  // namespace weft
