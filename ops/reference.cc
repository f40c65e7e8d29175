#include "ops/reference.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/kernels/half.h"
#include "ops/kernels/quantized_rows.h"
#include "ops/op_table.h"
#include "ops/storage.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// Where one element of a head lies in a page, and (q8_0) its scale.
struct KvPlace {
  uint8_t* head;
  int64_t element;
  int64_t scale;
};

KvPlace PlaceOf(const ValueType& type, const KvState& state, int32_t slot,
                int64_t position, int64_t head, int64_t d) {
  const int64_t head_dim = type.shape[2].value;
  const int64_t at = position % kPageTokens;
  const bool keys = type.layout == "keys";
  const KvType kv = KvTypeOf(type.dtype);
  KvPlace place;
  place.head = KvPage(state, slot, position) + head * KvHeadBytes(kv, head_dim);
  place.element = KvElement(kv, keys, head_dim, at, d);
  place.scale = KvElement(KvType::kF16, keys, head_dim / 32, at, d / 32);
  return place;
}

float ReadHalf(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return F16ToF32(bits);
}

void WriteHalf(uint8_t* p, float x) {
  const uint16_t bits = F32ToF16(x);
  std::memcpy(p, &bits, 2);
}

absl::Status Invalid(const Node& node, int i, absl::string_view want,
                     const ValueType& found) {
  return absl::InvalidArgumentError(absl::StrCat(node.op->name, " operand ", i,
                                                 ": want ", want, ", found ",
                                                 found.ToString()));
}

}  // namespace

double ClampedGate(double gate, double up, double limit, double slope) {
  const double g = gate > limit ? limit : gate;
  const double u = up > limit ? limit : up < -limit ? -limit : up;
  return g / (1 + std::exp(-slope * g)) * (u + 1);
}

std::vector<double> ReadRow(const ReferenceCall& call, int i, int64_t row) {
  const ValueType& type = call.input_type(i);
  const Operand& in = call.inputs[i];
  const int64_t columns = in.columns;
  std::vector<double> result(columns);
  if (type.dtype == DType::kQ8Rows) {
    for (int64_t block = 0; block < columns / 32; ++block) {
      const QuantizedBlock b =
          QuantizedBlockAt(in.data, in.rows, columns, row, block);
      for (int k = 0; k < 32; ++k) {
        result[block * 32 + k] = static_cast<double>(*b.scale) * b.q[k];
      }
    }
    return result;
  }
  std::vector<float> floats(columns);
  const uint8_t* data = static_cast<const uint8_t*>(in.data);
  if (type.dtype == DType::kF32 && type.layout.empty()) {
    std::memcpy(floats.data(), data + row * in.row_bytes, columns * 4);
  } else {
    FindWeightLayout(type.layout)
        ->read_row(type.dtype, in.rows, columns, data, row, floats.data());
  }
  result.assign(floats.begin(), floats.end());
  return result;
}

void WriteRow(const ReferenceCall& call, int i, int64_t row,
              const std::vector<double>& values) {
  const Operand& out = call.outputs[i];
  if (call.output_type(i).dtype != DType::kQ8Rows) {
    float* y = OutputRow(call, i, row);
    for (size_t k = 0; k < values.size(); ++k) {
      y[k] = static_cast<float>(values[k]);
    }
    return;
  }
  const std::vector<float> floats(values.begin(), values.end());
  for (int64_t block = 0; block < out.columns / 32; ++block) {
    const float* x = floats.data() + block * 32;
    QuantizeBlock(
        Load(x), Load(x + 16),
        QuantizedBlockAt(out.data, out.rows, out.columns, row, block));
  }
}

std::vector<double> RoundToQuantized(const std::vector<double>& row) {
  const std::vector<float> floats(row.begin(), row.end());
  std::vector<double> result(row.size());
  alignas(64) uint8_t block[kQuantizedRowsBlockBytes];
  for (size_t k = 0; k < row.size(); k += 32) {
    const QuantizedBlock b = QuantizedBlockAt(block, 1, 32, 0, 0);
    QuantizeBlock(Load(floats.data() + k), Load(floats.data() + k + 16), b);
    for (int j = 0; j < 32; ++j) {
      result[k + j] = static_cast<double>(*b.scale) * b.q[j];
    }
  }
  return result;
}

double ReadKv(const ValueType& type, const KvState& state, int32_t slot,
              int64_t position, int64_t head, int64_t d) {
  const KvPlace at = PlaceOf(type, state, slot, position, head, d);
  switch (type.dtype) {
    case DType::kF16:
      return ReadHalf(at.head + at.element * 2);
    case DType::kBF16: {
      uint16_t bits;
      std::memcpy(&bits, at.head + at.element * 2, 2);
      return BF16ToF32(bits);
    }
    case DType::kQ8_0: {
      const int64_t values = type.shape[2].value * kPageTokens;
      const int8_t q = static_cast<int8_t>(at.head[at.element]);
      return static_cast<double>(ReadHalf(at.head + values + at.scale * 2)) * q;
    }
    default: {
      float x;
      std::memcpy(&x, at.head + at.element * 4, 4);
      return x;
    }
  }
}

void WriteKv(const ValueType& type, const KvState& state, int32_t slot,
             int64_t position, int64_t head,
             const std::vector<double>& values) {
  const int64_t head_dim = type.shape[2].value;
  for (int64_t d = 0; d < head_dim; ++d) {
    const KvPlace at = PlaceOf(type, state, slot, position, head, d);
    const float x = static_cast<float>(values[d]);
    switch (type.dtype) {
      case DType::kF16:
        WriteHalf(at.head + at.element * 2, x);
        break;
      case DType::kBF16: {
        const uint16_t bits = F32ToBF16(x);
        std::memcpy(at.head + at.element * 2, &bits, 2);
        const bool half_pair = d % 2 == 0 && d + 1 == head_dim;
        if (half_pair && type.layout == "keys") {
          std::memset(at.head + at.element * 2 + 2, 0, 2);
        }
        break;
      }
      case DType::kQ8_0: {
        float largest = 0;
        for (int64_t k = d / 32 * 32; k < d / 32 * 32 + 32; ++k) {
          largest =
              std::fmax(largest, std::fabs(static_cast<float>(values[k])));
        }
        uint8_t* scale = at.head + head_dim * kPageTokens + at.scale * 2;
        WriteHalf(scale, largest / 127.0f);
        const float s = ReadHalf(scale);
        const float q = s > 0 ? std::nearbyint(x / s) : 0.0f;
        at.head[at.element] = static_cast<uint8_t>(
            static_cast<int8_t>(std::fmax(-127.0f, std::fmin(127.0f, q))));
        break;
      }
      default:
        std::memcpy(at.head + at.element * 4, &x, 4);
    }
  }
}

std::vector<double> RmsNormRow(const std::vector<double>& x,
                               const std::vector<double>& weight, double eps) {
  double sum = 0;
  for (double v : x) sum += v * v;
  const double inverse = 1.0 / std::sqrt(sum / x.size() + eps);
  std::vector<double> y(x.size());
  for (size_t k = 0; k < x.size(); ++k) y[k] = x[k] * inverse * weight[k];
  return y;
}

std::vector<double> LayerNormRow(const std::vector<double>& x,
                                 const std::vector<double>& weight,
                                 const std::vector<double>& bias, double eps) {
  double mean = 0, variance = 0;
  for (double v : x) mean += v;
  mean /= x.size();
  for (double v : x) variance += (v - mean) * (v - mean);
  const double inverse = 1.0 / std::sqrt(variance / x.size() + eps);
  std::vector<double> y(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    y[k] = (x[k] - mean) * inverse * weight[k] + bias[k];
  }
  return y;
}

double Silu(double x) { return x / (1.0 + std::exp(-x)); }

double Gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }

double GeluTanh(double x) {
  const double c = std::sqrt(2.0 / 3.14159265358979323846);
  return 0.5 * x * (1.0 + std::tanh(c * (x + 0.044715 * x * x * x)));
}

absl::Status WantFloatMatrix(const Graph& graph, const Node& node, int i) {
  const ValueType& type = OperandType(graph, node, i);
  if (type.dtype == DType::kF32 && type.shape.rank() >= 2 &&
      type.layout.empty()) {
    return absl::OkStatus();
  }
  return Invalid(node, i, "a matrix of f32", type);
}

absl::Status WantIntegers(const Graph& graph, const Node& node, int i,
                          int rows_of) {
  // Constants and results would not be checked before kernels use them as
  // indices.
  const Value& value = graph.value(node.inputs[i]);
  const ValueType& type = value.type;
  if (value.kind != ValueKind::kInput || type.dtype != DType::kI32 ||
      type.shape.rank() != 1 || !type.layout.empty()) {
    return Invalid(node, i, "an input, a vector of i32", type);
  }
  if (rows_of >= 0 &&
      type.shape[0] != OperandType(graph, node, rows_of).shape[0]) {
    return Invalid(node, i,
                   absl::StrCat("one number for each row of operand ", rows_of),
                   type);
  }
  return absl::OkStatus();
}

absl::Status WantWhole(const Graph& graph, const Node& node, int i) {
  const Node* producer = graph.Producer(node.inputs[i]);
  if (producer == nullptr || !producer->op->view) return absl::OkStatus();
  return Invalid(node, i, "a whole value, not a slice",
                 OperandType(graph, node, i));
}

absl::Status WantVector(const Graph& graph, const Node& node, int i, Dim n) {
  const ValueType& type = OperandType(graph, node, i);
  if (type.dtype == DType::kF32 && type.shape == Shape{n} &&
      type.layout.empty()) {
    return absl::OkStatus();
  }
  return Invalid(node, i, absl::StrCat("f32[", n.ToString(), "]"), type);
}

bool IsStateType(const ValueType& type) {
  return IsPagedState(type) || IsSlotState(type);
}

bool IsPagedState(const ValueType& type) {
  return FindKvType(type.dtype).has_value() && type.shape.rank() == 3 &&
         type.shape[0] == Dim::Context() &&
         type.shape[1].symbol == Dim::kNumber &&
         type.shape[2].symbol == Dim::kNumber &&
         type.shape[2].value <= kMaxHeadDim &&
         (type.layout == "keys" || type.layout == "values");
}

bool IsSlotState(const ValueType& type) {
  const int rank = type.layout == "window"     ? 2
                   : type.layout == "matrices" ? 3
                                               : 0;
  if (rank == 0 || type.dtype != DType::kF32 || type.shape.rank() != rank) {
    return false;
  }
  for (int i = 0; i < rank; ++i) {
    if (type.shape[i].symbol != Dim::kNumber) return false;
  }
  return true;
}

absl::Status WantState(const Graph& graph, const Node& node, int i,
                       absl::string_view layout) {
  const ValueType& type = OperandType(graph, node, i);
  const bool fits = layout.empty() ? IsPagedState(type)
                                   : IsStateType(type) && type.layout == layout;
  if (fits && IsStateVersion(graph, node.inputs[i])) return absl::OkStatus();
  const std::string shape =
      layout == "window" ? "[rows,columns]"
      : layout == "matrices"
          ? "[heads,keys,values]"
          : absl::StrCat("[S,heads,head_dim<=", kMaxHeadDim, "]");
  return Invalid(node, i, absl::StrCat("a state ", shape, "{", layout, "}"),
                 type);
}

}  // namespace weft
