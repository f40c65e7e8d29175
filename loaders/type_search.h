// Which type each tensor gets when only the size of the whole is given.
//
// The error of every type is measured on every tensor, by sample: rows spread
// over it are quantised and compared, weighted by the importance of their
// columns, relative to the tensor's own size. So it is the share of noise in
// what the product gives, and the sum over all tensors, the embedding and the
// output counted more, is what a choice costs.
// Least cost for the bytes: a Lagrange multiplier says what a byte is worth,
// each tensor takes the type with the least error + bytes * that, and the worth
// is halved in until the bytes suffice; what they leave goes, step by step,
// where one byte gains most.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/dtype.h"

namespace weft {

struct TypeCost {
  DType type;
  int64_t bytes;
  double error;
};

struct TensorCosts {
  std::string tensor;
  std::vector<TypeCost> types;  // not empty
};

// For each tensor the place of its type, so that all bytes together are at most
// `budget`, if the smallest types do.
std::vector<size_t> ChooseTypes(absl::Span<const TensorCosts> tensors,
                                int64_t budget);

// The types that a search tries.
absl::Span<const DType> SearchedTypes();

// Squared error of `rows` (floats, [count][columns]) in a type, weighted, as a
// share of their own weighted squares. importance: of each column, or null.
double RelativeErrorOf(DType type, absl::Span<const float> rows,
                       int64_t columns, const float* importance);

}  // namespace weft
