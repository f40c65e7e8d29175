// The lists of row kernels that this CPU runs.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
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

// The function of an op.
template <class Line>
auto Find(const KernelList<Line>& lines, absl::string_view op) {
  for (const Line& line : lines) {
    if (line.op == op) return line.run;
  }
  return decltype(Line::run){};
}

// Of a list that has one op, the function for a cache of this type.
template <class Line>
auto Find(const KernelList<Line>& lines, KvType type) {
  for (const Line& line : lines) {
    if (line.type == type) return line.run;
  }
  return decltype(Line::run){};
}

inline ConstRows In(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }
inline MutableRows Out(RandomMatrix& m) { return {m.data(), m.row_bytes()}; }

}  // namespace weft
