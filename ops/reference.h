// What reference functions share: reading operands of any type and layout as
// plain numbers, and the checks that inference rules have in common.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "ops/op.h"

namespace weft {

// --- Values.

// Row `row` of operand `i`: floats, quantised rows, or a weight in any layout.
std::vector<double> ReadRow(const ReferenceCall& call, int i, int64_t row);

inline float* OutputRow(const ReferenceCall& call, int i, int64_t row) {
  const Operand& out = call.outputs[i];
  return reinterpret_cast<float*>(static_cast<uint8_t*>(out.data) +
                                  row * out.row_bytes);
}

// Writes one row into result `i`, as floats or quantised rows, as its type
// says.
void WriteRow(const ReferenceCall& call, int i, int64_t row,
              const std::vector<double>& values);

// What a result stored as f32 keeps. Fused ops round where the ops that they
// stand for store a result, so that a fusion moves no bit of a reference run.
inline double RoundToFloat(double x) { return static_cast<float>(x); }
inline void RoundToFloats(std::vector<double>* row) {
  for (double& x : *row) x = RoundToFloat(x);
}

// The quantised-rows rounding of a row of floats, and back.
std::vector<double> RoundToQuantized(const std::vector<double>& row);

inline const int32_t* Integers(const ReferenceCall& call, int i) {
  return static_cast<const int32_t*>(call.inputs[i].data);
}

// Key or value `d` of `head` at `position` of the sequence in `slot`.
double ReadKv(const ValueType& type, const KvState& state, int32_t slot,
              int64_t position, int64_t head, int64_t d);

// Stores one head's values at a position, rounding as the state's type says.
void WriteKv(const ValueType& type, const KvState& state, int32_t slot,
             int64_t position, int64_t head, const std::vector<double>& values);

// The slot of a state in which sequence `slot` has its numbers.
inline float* SlotOf(const KvState& state, int32_t slot) {
  return reinterpret_cast<float*>(state.pages + slot * state.page_bytes);
}

// x / sqrt(mean(x^2) + eps) * weight.
std::vector<double> RmsNormRow(const std::vector<double>& x,
                               const std::vector<double>& weight, double eps);

// (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias.
std::vector<double> LayerNormRow(const std::vector<double>& x,
                                 const std::vector<double>& weight,
                                 const std::vector<double>& bias, double eps);

// Activations: x sigmoid(x), and x Phi(x), Phi the normal distribution or its
// approximation by tanh (sources: ops/kernels/vector.h).
double Silu(double x);
double Gelu(double x);
double GeluTanh(double x);

// y = g sigmoid(slope g) (u + 1), where g is gate but at most limit, and u is
// up within limit of 0 (OpenAI 2025, arXiv:2508.10925).
double ClampedGate(double gate, double up, double limit, double slope);

// --- Rules.

absl::Status WantFloatMatrix(const Graph& graph, const Node& node, int i);
// Numbers that are given anew in every step, one for each row of operand
// `rows_of` (-1: of no operand).
absl::Status WantIntegers(const Graph& graph, const Node& node, int i,
                          int rows_of);
// A whole value, not a window into another: what it is read by takes its rows
// to follow one another.
absl::Status WantWhole(const Graph& graph, const Node& node, int i);
// A float vector of n elements.
absl::Status WantVector(const Graph& graph, const Node& node, int i, Dim n);
// A state's type: of one of the two kinds. By position, in pages:
// [S,heads,head_dim] in a layout of keys or values. By sequence, in a slot:
// numbers in f32, as a window [rows,columns] or matrices [heads,keys,values].
bool IsStateType(const ValueType& type);
bool IsPagedState(const ValueType& type);
bool IsSlotState(const ValueType& type);
absl::Status WantState(const Graph& graph, const Node& node, int i,
                       absl::string_view layout);

inline const ValueType& OperandType(const Graph& graph, const Node& node,
                                    int i) {
  return graph.value(node.inputs[i]).type;
}

inline ValueType FloatType(Shape shape) {
  return {DType::kF32, std::move(shape), ""};
}

}  // namespace weft
