#include "ops/pooling.h"

namespace weft {

void Pooler::Add(absl::Span<const float> vector) {
  ++count_;
  for (size_t i = 0; i < sums_.size(); ++i) {
    switch (pooling_) {
      case Pooling::kNone:
      case Pooling::kMean:
        sums_[i] += vector[i];
        break;
      case Pooling::kFirst:
        if (count_ == 1) sums_[i] = vector[i];
        break;
      case Pooling::kLast:
        sums_[i] = vector[i];
        break;
    }
  }
}

std::vector<float> Pooler::Result() const {
  const bool mean = pooling_ == Pooling::kNone || pooling_ == Pooling::kMean;
  std::vector<float> result(sums_.size());
  for (size_t i = 0; i < sums_.size(); ++i) {
    result[i] = static_cast<float>(sums_[i] / (mean ? count_ : 1));
  }
  return result;
}

}  // namespace weft
