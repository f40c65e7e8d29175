// Which tensors of a folder become which of the file, and their bytes.
//
// Idea: everything that is done to weights is a walk over their rows. A tensor
// of the file is a list of published ones of one shape (stacked experts, or
// one), of which rows are taken in an order, each number perhaps changed, and
// stored in the wanted type. Only a few rows are in memory at a time.
//
// Norms, biases, routers and what else is small and matters is F32 whatever the
// wanted type, as public converters have it. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/dtype.h"
#include "loaders/convert/family.h"
#include "loaders/gguf_writer.h"
#include "loaders/safetensors/safetensors.h"

namespace weft {

struct PlannedTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> dims;  // in GGUF order
  int64_t block = -1;         // -1: of none
  const TensorRule* rule = nullptr;
  // Point into the folder; scales of MXFP4 as many as parts, else none.
  std::vector<const SafetensorsTensor*> parts, scales;
  int64_t heads = 0;  // whose pairs become neighbours
};

// In the file's order: embedding, blocks, the rest. `type`: of matrices; unset:
// as stored. Errors name the tensor: one that no rule has, of a type that
// cannot be converted, stacks with gaps or of different shapes, shapes that a
// rule cannot be applied to. `family` must outlive the result.
absl::StatusOr<std::vector<PlannedTensor>> PlanTensors(
    const Family& family, const Conversion& conversion,
    absl::Span<const SafetensorsTensor> tensors, std::optional<DType> type);

// All bytes of a tensor. Errors: numbers that the type cannot hold.
absl::Status ProduceTensor(const PlannedTensor& tensor,
                           const GgufWriter::Sink& sink);

}  // namespace weft
