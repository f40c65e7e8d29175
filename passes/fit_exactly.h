// Places a few buffers between a floor and a ceiling, or finds that they do not
// fit.
//
// Branch and bound. Where some placement fits, one fits in which no buffer can
// sink: each rests on the floor or on buffers alive with it. Its buffers in
// order of offsets, each put down on what lies below it, are one path of the
// search. A branch is given up once some step has too little room for what is
// still to come, and one that puts a buffer where another would have fitted
// below it is not begun. A part without a byte to spare, hard for heuristics,
// is so the easy one: gaps end a branch at once. The search follows Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
// Learning", 2023.
//
// Limits: exponential at worst, so the caller says how much work is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

// What takes one place in the arena: records that share are one buffer.
struct Buffer {
  int32_t first;  // steps, inclusive
  int32_t last;
  int64_t bytes;  // rounded up to the alignment
};

// Bytes from the start of the arena that are free at each step.
struct FreeSpace {
  std::vector<int64_t> floor;
  std::vector<int64_t> ceiling;
};

// One offset for each buffer, whose steps must be those of `space` and whose
// bytes must be positive; nothing if they do not fit, or if `work`, which is
// lowered by the comparisons made, ran out. Thread-safe.
std::optional<std::vector<int64_t>> FitExactly(
    const std::vector<Buffer>& buffers, const FreeSpace& space, int64_t* work);

}  // namespace weft
