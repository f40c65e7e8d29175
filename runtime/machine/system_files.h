// Small readers for what Linux tells in files: /proc, /sys and control groups.
//
// `root` stands before every path; it is empty but in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// The whole of a small file, or nothing.
std::optional<std::string> ReadSystemFile(const std::string& path);

// The number in a file that holds one. "max" and what is no number: nothing.
std::optional<int64_t> ReadNumber(const std::string& path);

// The number after `key` in a file of "key value" or "key: value unit" lines.
std::optional<int64_t> ReadField(const std::string& path,
                                 absl::string_view key);

// The folders of this process's control group and of all above it that the
// process can see, innermost first; limits of all of them hold.
struct CgroupFolders {
  std::vector<std::string> v1;  // of the controller asked for
  std::vector<std::string> v2;
};
// `controller`: "memory" or "cpu".
CgroupFolders FindCgroup(const std::string& root, absl::string_view controller);

}  // namespace weft
