// The row kernel tables that this CPU runs.
#pragma once

#include <vector>

#include "ops/kernels/cpu.h"
#include "ops/kernels/rows/rows.h"
#include "tests/ops/kernels/random_matrix.h"

namespace weft {

inline std::vector<const RowKernels*> RowKernelsHere() {
  std::vector<const RowKernels*> tables;
#if defined(__x86_64__)
  const Isa isa = DetectIsa();
  if (Includes(isa, Isa::kAvx2)) tables.push_back(&kRowKernelsAvx2);
  if (Includes(isa, Isa::kAvx512)) tables.push_back(&kRowKernelsAvx512);
#elif defined(__aarch64__)
  tables.push_back(&kRowKernelsNeon);
#endif
  return tables;
}

inline ConstRows In(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }
inline MutableRows Out(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }

}  // namespace weft
