// Bytes for weights that have none, such as those of a parsed graph.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "ops/quantize.h"

namespace weft {

// Normal numbers that keep the size of what they are multiplied by, in the
// weight's own type. The same seed and name give the same bytes. Requires a
// weight row after row.
inline WeightData RandomWeight(const ValueType& type, const std::string& name,
                               uint32_t seed) {
  const Shape& shape = type.shape;
  const int64_t columns = shape[shape.rank() - 1].value;
  const int64_t rows = shape.rank() == 2 ? shape[0].value : 1;
  const bool vector = shape.rank() == 1;
  for (char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  std::mt19937 random(seed);
  std::vector<float> row(columns);
  auto bytes = std::make_shared<std::vector<uint8_t>>(
      rows * RowBytes(type.dtype, columns));
  const float scale = vector ? 0.2f : 1.0f / std::sqrt(float(columns));
  for (int64_t r = 0; r < rows; ++r) {
    // Sums of twelve uniform numbers: the same on every platform.
    for (float& x : row) {
      float sum = -6;
      for (int i = 0; i < 12; ++i) sum += float(random() >> 8) / (1 << 24);
      x = sum * scale + (vector ? 1.0f : 0.0f);
    }
    uint8_t* out = bytes->data() + r * RowBytes(type.dtype, columns);
    if (!QuantizeRow(type.dtype, row.data(), out, columns).ok()) std::abort();
  }
  return {*bytes, bytes};
}

// Every weight of the graph that is row after row and has no bytes.
inline void FillWeights(Graph* graph, uint32_t seed) {
  for (ValueId id = 0; id < graph->value_count(); ++id) {
    Value& value = graph->value(id);
    if (value.kind == ValueKind::kWeight && value.data.bytes.empty() &&
        value.type.layout.empty()) {
      value.data = RandomWeight(value.type, value.name, seed);
    }
  }
}

}  // namespace weft
