// Places the buffers of a deep model in an arena of a given size, layer by
// layer.
//
// Where at most one buffer lives on from one step to the next, as the residual
// stream does between layers, the program falls into two parts that meet in
// this buffer alone. If that lies at the bottom or at the top of the arena, the
// rest of a part is one piece of free space, and small enough for an exhaustive
// search:
//
//            layer 0              layer 1              layer 2
//   top      scratch   [ stream 1 . . . . . . . ]      scratch
//            experts' results     experts' results     experts' results
//   bottom   stream 0 . . . . ]   scratch   [ stream 2 . . . . . . .
//
// Which end each of them takes follows from a walk over the parts. Equal parts
// are searched once, so that depth costs little.
//
// Limits: a plan with such a buffer in the middle is not found, nor one of a
// part of too many buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/fit_exactly.h"

namespace weft {

// One offset for each buffer; nothing if no such plan was found within a fixed
// amount of work. The same plan every time. Thread-safe.
std::optional<std::vector<int64_t>> FitByParts(
    const std::vector<Buffer>& buffers, int64_t arena_bytes);

}  // namespace weft
