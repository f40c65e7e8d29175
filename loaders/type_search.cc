#include "loaders/type_search.h"

#include <limits>

#include "ops/dequantize.h"
#include "ops/quantize.h"

namespace weft {
namespace {

// Types with as many bits as another and more error are left out.
constexpr DType kSearched[] = {
    DType::kIQ1_S,  DType::kIQ1_M, DType::kIQ2_XXS, DType::kIQ2_XS,
    DType::kIQ2_S,  DType::kQ2_K,  DType::kIQ3_XXS, DType::kIQ3_S,
    DType::kIQ4_XS, DType::kQ4_K,  DType::kIQ4_NL,  DType::kQ5_K,
    DType::kQ5_1,   DType::kQ6_K,  DType::kQ8_0,    DType::kF16,
};

std::vector<size_t> ChooseAt(absl::Span<const TensorCosts> tensors,
                             double worth, int64_t* bytes) {
  std::vector<size_t> chosen;
  *bytes = 0;
  for (const TensorCosts& tensor : tensors) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < tensor.types.size(); ++i) {
      const TypeCost& cost = tensor.types[i];
      const double price = cost.error + worth * static_cast<double>(cost.bytes);
      if (price < least) {
        least = price;
        best = i;
      }
    }
    chosen.push_back(best);
    *bytes += tensor.types[best].bytes;
  }
  return chosen;
}

}  // namespace

absl::Span<const DType> SearchedTypes() { return kSearched; }

std::vector<size_t> ChooseTypes(absl::Span<const TensorCosts> tensors,
                                int64_t budget) {
  // At `high` the smallest types are chosen: no error is worth a byte.
  double low = 0.0, high = 1e6;
  int64_t bytes;
  for (int round = 0; round < 200; ++round) {
    // The worth of a byte may have any magnitude.
    const double middle = low > 0.0 ? (low + high) / 2 : high / 16;
    ChooseAt(tensors, middle, &bytes);
    if (bytes <= budget) {
      high = middle;
      if (middle < 1e-30) break;
    } else {
      low = middle;
    }
  }
  std::vector<size_t> chosen = ChooseAt(tensors, high, &bytes);
  while (true) {
    double most = 0.0;
    size_t tensor = 0, type = 0;
    for (size_t t = 0; t < tensors.size(); ++t) {
      const TypeCost& now = tensors[t].types[chosen[t]];
      for (size_t i = 0; i < tensors[t].types.size(); ++i) {
        const TypeCost& other = tensors[t].types[i];
        const int64_t more = other.bytes - now.bytes;
        if (bytes + more > budget || !(other.error < now.error)) continue;
        const double gain = (now.error - other.error) /
                            static_cast<double>(more > 0 ? more : 1);
        if (gain > most) {
          most = gain;
          tensor = t;
          type = i;
        }
      }
    }
    if (most == 0.0) return chosen;
    bytes += tensors[tensor].types[type].bytes -
             tensors[tensor].types[chosen[tensor]].bytes;
    chosen[tensor] = type;
  }
}

double RelativeErrorOf(DType type, absl::Span<const float> rows,
                       int64_t columns, const float* importance) {
  std::vector<uint8_t> stored(static_cast<size_t>(RowBytes(type, columns)));
  std::vector<float> back(static_cast<size_t>(columns));
  double error = 0.0, squares = 0.0;
  for (size_t at = 0; at + back.size() <= rows.size(); at += back.size()) {
    const float* row = rows.data() + at;
    if (!QuantizeRow(type, row, stored.data(), columns, importance).ok()) {
      return std::numeric_limits<double>::infinity();
    }
    DequantizeRow(type, stored.data(), back.data(), columns);
    for (size_t i = 0; i < back.size(); ++i) {
      const double weight = importance == nullptr ? 1.0 : importance[i];
      const double rest = double{back[i]} - row[i];
      error += weight * rest * rest;
      squares += weight * row[i] * row[i];
    }
  }
  return squares > 0.0 ? error / squares : 0.0;
}

}  // namespace weft
