// Kernels that treat each row of a matrix by itself: norms, elementwise
// functions, softmax, gathering rows, RoPE, and writing keys and values into
// pages.
//
// Every kernel takes work items [begin, end) and touches nothing outside them,
// so a caller may split a call over threads as it likes; one item is one row.
// Results are the same bits for any split, any number of rows and any
// instruction set. Rows are `row_bytes` apart; matrices may be slices of wider
// ones. An output may be the very same matrix as an input, but not overlap it
// otherwise. Plain structs: files compiled for one instruction set include
// this.
#pragma once

#include <stdint.h>

#include "ops/kernels/kernel.h"
#include "ops/kernels/kv_layout.h"

namespace weft {

struct ConstRows {
  const float* data;
  int64_t row_bytes;
};

struct MutableRows {
  float* data;
  int64_t row_bytes;
};

// RMSNorm: y = x * inv * weight with inv = 1 / sqrt(mean(x^2) + epsilon); Zhang
// and Sennrich 2019 (arXiv:1910.07467); without a weight, x * inv. LayerNorm:
// y = (x - mean) * inv * weight + bias; Ba et al. 2016 (arXiv:1607.06450). L2
// norm: y = x / max(|x|, epsilon). A row may have several heads, side by side,
// each normalised by itself. rms_norm_gate: y = silu(gate) * RMSNorm.
struct NormArgs {
  ConstRows x;
  int64_t columns;      // of one head
  const float* weight;  // [columns] at each head; rms_norm: or null; L2: null
  const float* bias;    // likewise, or null; layer norms only
  float epsilon;
  MutableRows y;            // unused by those that quantise
  uint8_t* quantized;       // those: the matrix of quantized_rows.h
  int64_t rows;             // those: rows of the whole matrix
  int64_t heads = 1;        // those: 1
  int64_t weight_step = 0;  // from head to head: 0 or `columns`
  ConstRows gate = {};      // of rms_norm_gate; as x
};

// columns % 32 == 0.
struct QuantizeRowsArgs {
  ConstRows x;
  int64_t columns;
  int64_t rows;  // of the whole matrix, which decides its tiles
  uint8_t* quantized;
};

// b.row_bytes == 0 repeats one row of b for every row of a.
struct BinaryArgs {
  ConstRows a;
  ConstRows b;
  int64_t columns;
  MutableRows y;
  float limit = 0;  // clamped_gate, as slope
  float slope = 0;
};

struct UnaryArgs {
  ConstRows x;
  int64_t columns;
  MutableRows y;
  float parameter = 0;  // scale: the factor; softcap: the cap
  // softmax: row r has the number sinks[r % heads] more, in its sum only; null:
  // it has not.
  const float* sinks = nullptr;
  int64_t heads = 1;
};

// y = sum over i of weights[i] * x[i * columns ...], added in order of i.
struct WeightedSumArgs {
  ConstRows x;        // [rows, parts * columns]
  ConstRows weights;  // [rows, parts]
  int64_t parts;
  int64_t columns;
  MutableRows y;
};

// y[i] = table[indices[i]], rows copied as bytes.
struct TakeRowsArgs {
  const uint8_t* table;
  int64_t table_row_bytes;
  const int32_t* indices;
  int64_t copy_bytes;
  uint8_t* y;
  int64_t y_row_bytes;
};

// Rotates pair i of every head by position * scale * base^(-2i / rope_dims) /
// factors[i]; Su et al. 2021 (arXiv:2104.09864). Dimensions from rope_dims on
// are copied. Angles are double precision: good for positions below 2^20. With
// a ramp (YaRN) the scale is 1 up to pair ramp_begin, and goes linearly to
// frequency_scale at ramp_end.
struct RopeArgs {
  ConstRows x;  // [rows, heads * head_dim]
  int64_t heads;
  int64_t head_dim;   // <= kMaxHeadDim
  int64_t rope_dims;  // even, <= head_dim
  // Pairs are x[i], x[i + rope_dims / 2]; else neighbours, x[2i], x[2i + 1].
  bool halves;
  double frequency_base;
  double frequency_scale;    // linear scaling: 1 / factor
  const float* factors;      // [rope_dims / 2] or null
  const int32_t* positions;  // [rows]
  MutableRows y;             // unused by rope_kv_write
  double ramp_begin = 0;
  double ramp_end = 0;  // 0: no ramp
  float magnitude = 1;  // of sines and cosines
};

// Rows of f32 keys or values into the pages of their sequences. Splitting few
// rows over threads makes them share cache lines: slow, not wrong.
struct KvWriteArgs {
  ConstRows x;  // [rows, heads * head_dim]; unused by rope_kv_write
  int64_t heads;
  int64_t head_dim;  // <= kMaxHeadDim; kQ8_0: a multiple of 32
  bool keys;         // transposed layout
  const KvState* state;
  const int32_t* positions;  // [rows]
  const int32_t* slots;      // [rows]: of its sequence
};

// The same bits as rope followed by kv_write of its result.
struct RopeKvWriteArgs {
  RopeArgs rope;
  KvWriteArgs write;
};

// y + sum over adapters i of scales[i] (x a_i^T) b_i (ops/lora.h), in two
// phases. LoraDown: work item row * rank + r is row `row` of x times row r of
// a, into products; not where the row has nothing of the adapter. LoraUp: item
// row * blocks + block adds to kLoraColumns columns of y.
constexpr int64_t kLoraColumns = 512;

struct LoraArgs {
  ConstRows y;  // [rows, outputs]
  ConstRows x;  // [rows, inputs]
  int64_t inputs;
  int64_t outputs;
  const float* a;             // [rank, inputs]
  const float* b;             // [rank, outputs]
  ConstRows scales;           // [rows, adapters]
  const int32_t* adapter_of;  // [rank], ascending: whose the row of a and b is
  int64_t rank;
  float* products;  // [rows, rank]
  MutableRows sum;  // [rows, outputs]; may be y
};

// A kernel is a line of the lists below: an op, the function, and where an op
// has several kernels, which nodes are this one's. The lists stand under the
// functions, in the .inl files.
template <class Args>
using RowFunction = void (*)(const Args&, int64_t row_begin, int64_t row_end);

template <class Args>
struct RowKernel {
  const char* op;
  RowFunction<Args> run;
};

// Nodes with this approximation: by tanh, or none.
struct GeluKernel {
  const char* op;
  RowFunction<UnaryArgs> run;
  bool tanh;
};

// Writes states of one type.
template <class Args>
struct CacheKernel {
  const char* op;
  KvType type;
  RowFunction<Args> run;
};

struct LoraKernel {
  const char* op;
  RowFunction<LoraArgs> down, up;
};

// The family on one instruction set.
struct RowKernels {
  KernelList<RowKernel<NormArgs>> norm;
  KernelList<RowKernel<QuantizeRowsArgs>> quantize;
  KernelList<RowKernel<BinaryArgs>> binary;
  KernelList<RowKernel<UnaryArgs>> unary;
  KernelList<GeluKernel> gelu;
  KernelList<RowKernel<UnaryArgs>> softmax;
  KernelList<RowKernel<WeightedSumArgs>> weighted_sum;
  KernelList<RowKernel<TakeRowsArgs>> take_rows;
  KernelList<RowKernel<RopeArgs>> rope;
  KernelList<CacheKernel<KvWriteArgs>> kv_write;
  KernelList<CacheKernel<RopeKvWriteArgs>> rope_kv_write;
  KernelList<LoraKernel> lora;
};

extern const RowKernels kRowKernelsAvx2;
extern const RowKernels kRowKernelsAvx512;
extern const RowKernels kRowKernelsNeon;

}  // namespace weft
