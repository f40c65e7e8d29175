#include "ops/storage.h"

#include <cstdlib>

#include "ops/kernels/slot_layout.h"
#include "ops/weight_layout.h"

namespace weft {

int64_t StorageBytes(const ValueType& type, const Bounds& bounds) {
  if (type.layout == "keys" || type.layout == "values") {
    const int64_t context = type.shape[0].Resolve(bounds);
    return (context + kPageTokens - 1) / kPageTokens * KvPageBytes(type);
  }
  if (type.layout == "matrices") {
    return type.shape[0].value *
           MatrixFloats(type.shape[1].value, type.shape[2].value) *
           static_cast<int64_t>(sizeof(float));
  }
  if (type.layout == "window") return ValueBytes(type, bounds);
  const WeightLayout* layout = FindWeightLayout(type.layout);
  if (layout != nullptr && !type.layout.empty()) {
    return layout->bytes(type.dtype, type.shape[0].Resolve(bounds),
                         type.shape.RowElements(bounds));
  }
  return ValueBytes(type, bounds);
}

Operand MatrixOperand(const ValueType& type, const Bounds& step, void* data) {
  Operand operand = {};
  operand.data = data;
  const bool vector = type.shape.rank() == 1;
  operand.rows = vector ? 1 : type.shape[0].Resolve(step);
  operand.columns =
      vector ? type.shape[0].Resolve(step) : type.shape.RowElements(step);
  if (type.layout.empty() && Info(type.dtype).block_elements == 1) {
    operand.row_bytes = operand.columns * Info(type.dtype).block_bytes;
  }
  return operand;
}

DType DTypeOf(KvType type) {
  switch (type) {
    case KvType::kF32:
      return DType::kF32;
    case KvType::kF16:
      return DType::kF16;
    case KvType::kBF16:
      return DType::kBF16;
    case KvType::kQ8_0:
      return DType::kQ8_0;
  }
  std::abort();  // no other value is one of the type
}

std::optional<KvType> FindKvType(DType dtype) {
  for (KvType type : kKvTypes) {
    if (DTypeOf(type) == dtype) return type;
  }
  return std::nullopt;
}

KvType KvTypeOf(DType dtype) { return FindKvType(dtype).value(); }

int64_t ValueDim(const ValueType& state, int64_t value_dim) {
  return value_dim > 0 ? value_dim : state.shape[2].value;
}

KvState StateOf(const ValueType& type, uint8_t* data,
                const std::vector<int32_t>& page_table) {
  if (type.shape[0] != Dim::Context()) {
    return {data, StorageBytes(type, {}), nullptr, 0};
  }
  return {data, KvPageBytes(type), page_table.data(),
          static_cast<int64_t>(page_table.size())};
}

int64_t KvPageBytes(const ValueType& state) {
  return state.shape[1].value *
         KvHeadBytes(KvTypeOf(state.dtype), state.shape[2].value);
}

}  // namespace weft
