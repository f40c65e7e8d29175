// `weft quantize`: a model file with its matrices in another type.
//
// Tensor by tensor: rows are widened to float32, quantised on several threads
// and written out, so memory stays at a few megabytes however big the model.
// Metadata is copied; `general.file_type` and `general.quantization_version`
// are set. The bytes of the result do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/dtype.h"
#include "loaders/importance_matrix.h"

namespace weft {

struct QuantizeOptions {
  std::string type;                       // a word of quantization_mix.h
  std::vector<std::string> tensor_types;  // PATTERN=TYPE
  // In place of a type: bits per weight of the matrices, whose types are
  // searched for (type_search.h). 0: not so.
  double target_bits = 0.0;
  // Weights of the columns; may be null. The types below 3 bits need it.
  const ImportanceMatrix* importance = nullptr;
  int threads = 1;
  // Called before each tensor, for a progress line; may be empty.
  std::function<void(const std::string& tensor, int done, int total)> progress;
};

struct QuantizeReport {
  int64_t source_bytes = 0;  // of tensor data
  int64_t result_bytes = 0;
  // With target_bits: what was chosen, in the order of the file.
  struct Choice {
    std::string tensor;
    DType type;
    double bits;   // per weight
    double error;  // share of noise in the product, as measured
  };
  std::vector<Choice> choices;
  // One line per tensor that got another type than asked for, because its rows
  // are no multiple of that type's block.
  std::vector<std::string> warnings;
};

// Writes `result_path` whole or not at all; it may be the source's path.
// Errors: those of opening and writing, an unknown type or pattern, a source
// matrix that is already quantised (and not of the wanted type), a type that
// needs the importance of a matrix and does not have it, and weights that are
// NaN, infinite or too large for the type, by tensor and element.
absl::StatusOr<QuantizeReport> QuantizeModel(const std::string& source_path,
                                             const std::string& result_path,
                                             const QuantizeOptions& options);

}  // namespace weft
