// What a model gives, and the vector of a text, made of its tokens'.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// The numbers are those that model files have (`pooling_type`).
enum class Pooling : uint8_t { kNone = 0, kMean = 1, kFirst = 2, kLast = 3 };
constexpr int64_t kPoolings = 4;
// What files have in the place of a pooling where the model ranks: scores, made
// of one of these vectors.
constexpr int64_t kRanks = 4;

// What a step gives for each row that is asked for.
enum class ModelOutput : uint8_t {
  kLogits = 0,
  kHidden = 1,     // the token's vector, after the last norm
  kEmbedding = 2,  // the text's, through what the model has behind the pooling
  kScores = 3,     // what a ranker or classifier says of the text
};
constexpr int64_t kModelOutputs = 4;
// The name of the output in the graph.
constexpr const char* NameOf(ModelOutput output) {
  constexpr const char* kNames[kModelOutputs] = {"logits", "hidden",
                                                 "embedding", "scores"};
  return kNames[static_cast<int>(output)];
}
// Of a text as a whole: one row of the text is asked for, which Pooling says
// (any, where the mean is taken).
constexpr bool IsOfText(ModelOutput output) {
  return output == ModelOutput::kEmbedding || output == ModelOutput::kScores;
}

// Takes the tokens' vectors one after the other. Not thread-safe.
class Pooler {
 public:
  // kNone pools as kMean does.
  Pooler(Pooling pooling, int64_t columns)
      : pooling_(pooling), sums_(columns) {}

  // Requires as many numbers as columns.
  void Add(absl::Span<const float> vector);

  // Requires at least one vector. Not normalised.
  std::vector<float> Result() const;

 private:
  const Pooling pooling_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace weft
