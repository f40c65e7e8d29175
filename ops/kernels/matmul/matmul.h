// The matmul family: y[m, n] = sum over k of x[m, k] * w[n, k], with what
// fusion adds before the result leaves registers.
//
// Order of summation, which every integer kernel keeps for every element
// whatever the number of rows, threads or tiles ("blocks of 32 in order"):
//   sum = 0
//   for each block b of 32 columns, in order:
//     one scale per 32:    sum = fma(float(dot of 32 integers), ws * xs, sum)
//       with a minimum:    then sum = fma(scaled_sum, -wm, sum)
//     one scale per 16:    for the two halves in order,
//                          sum = fma(float(dot of 16 integers), ws * xs, sum)
//       with a minimum:    then sum = fma(xs * float(half sum), -wm, sum)
// where the integer dot is exact, ws = float(d) * float(sub-scale) rounded once
// and wm likewise (types with one scale have sub-scale 1, no rounding). After
// the sum: + bias, then the epilogue.
#pragma once

#include <stdint.h>

namespace weft {

enum class MatmulEpilogue {
  kStore,     // y = sum
  kResidual,  // y = sum + residual; y and residual may be the same memory
  kGate,      // weight panels alternate gate and up: y = activation(gate) * up
  // The same, then quantised rows (quantized_rows.h) instead of floats.
  kGateQuantize,
};

// kClamped: clamped_gate (ops/elementwise.cc), with `limit` and `slope`.
enum class GateActivation { kSilu, kGeluTanh, kClamped };

// Output rows that share a panel of a packed weight, one lane each. The last
// panel of a weight is filled with zeros.
constexpr int kPanelRows = 16;

struct MatmulArgs {
  // Quantised rows: the whole value (row_bytes unused). Floats: row 0.
  const void* x;
  int64_t x_row_bytes;
  int64_t rows;   // tokens
  int64_t depth;  // columns of x and of w
  const uint8_t* weight;
  // Rows of w. For the gate epilogues: rows of gate and up together.
  int64_t weight_rows;
  const float* bias;  // [weight_rows] in the order of these, or null
  MatmulEpilogue epilogue;
  GateActivation activation;  // for the gate epilogues
  float limit, slope;         // of kClamped
  float* y;
  int64_t y_row_bytes;
  const float* residual;
  int64_t residual_row_bytes;
  uint8_t* quantized;  // kGateQuantize
  // Null: row m of x makes row m of the result. Else it makes part places[m] %
  // parts of row places[m] / parts, where a row has `parts` times the columns;
  // floats lie y_row_bytes from part to part. Not with kResidual.
  const int32_t* places;
  int64_t parts;
  int64_t result_rows;  // kGateQuantize with places
};

// Computes output panels [begin, end) for all rows of x. `begin` is a multiple
// of 2 (4 for kGateQuantize: 64 packed rows make one block of 32 outputs)
// and so is `end` unless it is the last.
using MatmulFunction = void (*)(const MatmulArgs& args, int64_t panel_begin,
                                int64_t panel_end, uint8_t* thread_scratch);

// Computes `panels` (1 to 4) panels from `panel` on, for rows row_begin ..
// row_end - 1 of x.
using PanelGroupFunction = void (*)(const MatmulArgs& args, int64_t panel,
                                    int panels, int64_t row_begin,
                                    int64_t row_end);

// What comes after the sums of such a group: bias and epilogue. sums[r * 64 +
// 16
// * i + lane] belongs to row `row` + r and panel `panel` + i.
using FinishFunction = void (*)(const MatmulArgs& args, int64_t panel,
                                int panels, int64_t row, int rows,
                                const float* sums);

}  // namespace weft
