// Kernels of recurrent layers: the short convolution, the delta rule and the
// selective scan (ops/recurrent.cc says what they compute).
//
// A step has runs: rows of one sequence, which follow one another in order of
// position. A work item is a run and a few columns of the state (of a head's
// matrix, one panel); all rows of the run pass over them one after the other.
// So for each element of the state there is one order of operations, however
// the tokens are cut into steps, and results are the same bits for any split,
// step and instruction set. A run whose first row is at position 0 begins from
// zeros. Plain structs: files compiled for one instruction set include this.
#pragma once

#include <stdint.h>

#include "ops/kernels/kernel.h"
#include "ops/kernels/slot_layout.h"

namespace weft {

// Keys of a head, at most: what is made of them lies on the stack.
constexpr int kMaxHeadKeys = 512;

struct RecurrentRows {
  const float* data;
  int64_t row_bytes;
};

// What all have: which rows there are.
struct RecurrentRun {
  const KvState* state;
  const int32_t* positions;  // [rows]
  const int32_t* slots;      // [rows]: of its sequence
  int64_t rows;              // of the step
  float* y;
  int64_t y_row_bytes;
};

// y = bias + sum over i of taps[i] * x[row - window + i], i from 0 to `window`,
// added in that order.
struct ShortConvArgs {
  RecurrentRun run;
  RecurrentRows x;
  int64_t columns;
  int64_t window;     // rows of the state
  const float* taps;  // [window + 1][columns]
  const float* bias;  // [columns] or null
  bool silu;
};

// Columns of a work item.
constexpr int64_t kShortConvColumns = 256;

// S *= e^decay; S += k^T beta (v - k S); y = scale q S.
struct DeltaRuleArgs {
  RecurrentRun run;
  RecurrentRows q, k, v, decay, beta;
  int64_t heads;
  int64_t key_heads;
  int64_t keys;    // <= kMaxHeadKeys
  int64_t values;  // of a head
  bool tiled;      // head h has the keys h % key_heads, else of its group
  bool by_key;     // a decay for each key of a head
  float scale;
};

// S = e^(dt a) S + b^T dt x; y = c S + d x.
struct SelectiveScanArgs {
  RecurrentRun run;
  RecurrentRows x, b, c, dt;
  int64_t heads;
  int64_t groups;  // of heads, which share b and c
  int64_t keys;    // <= kMaxHeadKeys
  int64_t values;  // of a head
  // One head; dt and d of each value, a of each key and value. Else of each
  // head.
  bool by_value;
  const float* a;
  const float* d;
};

template <class Args>
using RecurrentFunction = void (*)(const Args&, int64_t begin, int64_t end);

template <class Args>
struct RecurrentKernel {
  const char* op;
  RecurrentFunction<Args> run;
};

// The family on one instruction set.
struct RecurrentKernels {
  KernelList<RecurrentKernel<ShortConvArgs>> short_conv;
  KernelList<RecurrentKernel<DeltaRuleArgs>> delta_rule;
  KernelList<RecurrentKernel<SelectiveScanArgs>> selective_scan;
};

extern const RecurrentKernels kRecurrentKernelsAvx2;
extern const RecurrentKernels kRecurrentKernelsAvx512;
extern const RecurrentKernels kRecurrentKernelsNeon;

}  // namespace weft
