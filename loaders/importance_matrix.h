// Importance matrices: how large the inputs of each product are, column by
// column, as means of squares over some text. A quantiser weighs errors by
// them.
//
// Two forms of file are read. The newer is GGUF without a model: for each
// matrix NAME.in_sum2 with sums of squares, columns by matrices (of experts),
// and NAME.counts with the tokens that were summed. The older is a list of
// names and values that begins with a count and has no mark of its own: a value
// is the mean times the number of calls that stands beside it. The newer is
// written. (llama.cpp: tools/imatrix/README.md; what the files of both forms
// hold was compared.)
//
// Files are not trusted: lengths are checked, and numbers that are negative,
// not finite or of no use are refused. Thread-safe where it is const.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// The inputs of one tensor's products: of one matrix, or of several experts.
struct InputSquares {
  std::vector<double> sums;    // [matrices][columns]
  std::vector<double> counts;  // [matrices], or one for all
};

struct ImportanceMatrix {
  // By the tensor's name, "blk.0.attn_q.weight".
  std::map<std::string, InputSquares> tensors;
  std::vector<std::string> datasets;
  int64_t chunks = 0;
  int64_t chunk_size = 0;  // tokens; 0: not known
  // Of the texts and of the model's weights, in keys of weft's own; empty: not
  // known.
  std::string text_hash, model_hash;

  static absl::StatusOr<ImportanceMatrix> Read(const std::string& path);
  // In the newer form.
  absl::Status Write(const std::string& path) const;

  // Mean squares, [matrices][columns], of a tensor with so many of them; of an
  // expert that no token met, 1. Empty where nothing is known of the tensor.
  // Error: it has another size.
  absl::StatusOr<std::vector<float>> Means(const std::string& tensor,
                                           int64_t columns,
                                           int64_t matrices) const;
};

}  // namespace weft
