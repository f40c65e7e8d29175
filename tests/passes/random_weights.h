// Bytes for weights that have none, such as those of a parsed graph.
#pragma once

#include <cmath>
#include <cstdlib>
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
  const bool vector = shape.rank() == 1;
  const int64_t columns = shape[shape.rank() - 1].value;
  const int64_t rows = vector ? 1 : shape[0].value;
  for (char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  std::mt19937 random(seed);
  // Quantising well is slow, so some blocks stand for all.
  constexpr int kBlocks = 64;
  const DTypeInfo& info = Info(type.dtype);
  std::vector<float> block(info.block_elements);
  std::vector<uint8_t> blocks(kBlocks * info.block_bytes);
  const float scale = vector ? 0.2f : 1.0f / std::sqrt(float(columns));
  for (int i = 0; i < kBlocks; ++i) {
    // Sums of twelve uniform numbers: the same on every platform.
    for (float& x : block) {
      float sum = -6;
      for (int j = 0; j < 12; ++j) sum += float(random() >> 8) / (1 << 24);
      x = sum * scale + (vector ? 1.0f : 0.0f);
    }
    if (!QuantizeRow(type.dtype, block.data(),
                     blocks.data() + i * info.block_bytes, info.block_elements)
             .ok()) {
      std::abort();
    }
  }
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  for (int64_t i = 0; i < rows * columns / info.block_elements; ++i) {
    const auto chosen = blocks.begin() + random() % kBlocks * info.block_bytes;
    bytes->insert(bytes->end(), chosen, chosen + info.block_bytes);
  }
  WeightData data;
  data.bytes = *bytes;
  data.owner = bytes;
  return data;
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
