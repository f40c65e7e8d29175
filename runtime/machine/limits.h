// What the machine can do at most, measured here and now on the threads that
// will be used: the figures that speeds are quoted against.
#pragma once

#include "absl/status/statusor.h"
#include "ops/kernels/cpu.h"
#include "runtime/machine/thread_pool.h"

namespace weft {

// Per second, all threads together. 0: this instruction set has no instruction
// for it.
struct Limits {
  double int8_ops = 0;       // of vectors
  double tile_int8_ops = 0;  // of tiles (AMX)
  double bf16_flops = 0;
  double f32_flops = 0;
  double read_bytes_per_second = 0;
};

// Takes about a second. The best of several runs each, since a machine is never
// faster than it is. Memory is read from a block well beyond the caches (256
// MiB, less where memory is short). Errors: no memory.
absl::StatusOr<Limits> MeasureLimits(ThreadPool& threads, Isa isa);

}  // namespace weft
