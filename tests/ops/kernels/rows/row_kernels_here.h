// The row kernel tables that this CPU runs.
#pragma once

#include <vector>

#include "ops/kernels/rows/rows.h"
#include "tests/ops/kernels/random_matrix.h"

namespace weft {

inline std::vector<const RowKernels*> RowKernelsHere() {
  std::vector<const RowKernels*> tables;
  if (CpuHasAvx2()) tables.push_back(&kRowKernelsAvx2);
  if (CpuHasAvx512()) tables.push_back(&kRowKernelsAvx512);
  return tables;
}

inline ConstRows In(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }
inline MutableRows Out(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }

}  // namespace weft
