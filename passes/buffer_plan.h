// What the buffer planner takes and gives: lifetimes in, offsets out.
//
//   step        0    1    2    3
//   %7 4 KiB    [---------]              offset 0
//   %8 1 KiB         [---------]         offset 4096
//   %9 4 KiB              .    [----]    offset 0      takes the place of %7
//
// Records are plain numbers: a planner never sees a graph.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

// Every offset is a multiple of this (one cache line, one 512-bit vector).
constexpr int64_t kBufferAlignment = 64;

// One temporary: a node's result, or a kernel's scratch (first == last).
struct Lifetime {
  // Steps, inclusive, first >= 0: written at `first`, last read at `last`. Two
  // values that meet in one step (an input and an output of one node) are alive
  // at the same time, and so never overlap unless one shares the other.
  int32_t first;
  int32_t last;
  // 0 for a value without storage, and for a view that only holds its parent.
  int64_t bytes;
  // Index of an EARLIER record whose storage this one uses, or -1. The two are
  // then one buffer: alive from the first step of either to the last step of
  // either, as large as the larger. Whether sharing is right (the kernel may
  // work in place, nobody reads the input later) is for the caller to know.
  int32_t share = -1;
};

struct BufferPlan {
  // One per record, in bytes from the start of the arena; sharing records have
  // the same one. A view inside its parent adds its own distance.
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0;
  // The largest set of buffers alive in one step; no plan can be smaller.
  int64_t lower_bound = 0;
  // All buffers, shared ones once: the arena if nothing were reused.
  int64_t sum_of_buffers = 0;
};

}  // namespace weft
