// How much memory there is, and how much this process took.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// Bytes that this process may still take without swapping: MemAvailable of
// /proc/meminfo, and for every control group (v1 and v2) around the process its
// limit minus its usage, where file pages count as free since the kernel drops
// them first (a mapped model is such). INT64_MAX if the system tells nothing.
// `root` stands before every path, for tests.
int64_t AvailableMemory(const std::string& root = "");

// The largest resident size so far, in bytes: of this program alone, also when
// its parent was larger before exec. 0 if unknown.
int64_t PeakResidentBytes();

}  // namespace weft
