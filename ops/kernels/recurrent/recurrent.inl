// The recurrent kernels, written once; each recurrent_<isa>.cc includes this
// and defines its lists. Everything is in an unnamed namespace: see vector.h.
//
// Sums over the keys of a head run in four parts, key i in part i % 4, so that
// one addition need not wait for the one before; then they are added in pairs.
#pragma once

#include "ops/kernels/recurrent/recurrent.h"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

// Lambdas need the attribute too, or accumulators go through memory.
#define WEFT_LAMBDA __attribute__((always_inline))

constexpr int kSumParts = 4;

WEFT_INLINE const float* RowOf(const RecurrentRows& rows, int64_t row) {
  return reinterpret_cast<const float*>(
      reinterpret_cast<const uint8_t*>(rows.data) + row * rows.row_bytes);
}

WEFT_INLINE float* ResultRow(const RecurrentRun& run, int64_t row) {
  return reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(run.y) +
                                  row * run.y_row_bytes);
}

WEFT_INLINE F32x16 LoadLanes(const float* p, int lanes) {
  return lanes == 16 ? Load(p) : LoadPart(p, lanes);
}

WEFT_INLINE void StoreLanes(float* p, F32x16 v, int lanes) {
  if (lanes == 16) {
    Store(p, v);
  } else {
    StorePart(p, v, lanes);
  }
}

WEFT_INLINE F32x16 SumOfParts(const F32x16 parts[kSumParts]) {
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Rows of one sequence, and its slot.
struct Rows {
  int64_t begin, end;
  float* slot;
  bool starts;  // from zeros
};

// The first run that begins at `row` or behind.
WEFT_INLINE Rows RowsFrom(const RecurrentRun& run, int64_t row) {
  Rows rows = {row, row + 1, nullptr, run.positions[row] == 0};
  const int32_t sequence = run.sequence[row];
  while (rows.end < run.rows && run.sequence[rows.end] == sequence) ++rows.end;
  rows.slot = reinterpret_cast<float*>(run.state->pages +
                                       sequence * run.state->page_bytes);
  return rows;
}

// Calls visit(rows, part) for work items [begin, end), `parts` for each run.
template <class Visit>
WEFT_INLINE void ForItems(const RecurrentRun& run, int64_t parts, int64_t begin,
                          int64_t end, Visit visit) {
  int64_t first = 0;  // item
  for (int64_t row = 0; row < run.rows && first < end; first += parts) {
    const Rows rows = RowsFrom(run, row);
    row = rows.end;
    for (int64_t part = begin > first ? begin - first : 0;
         part < parts && first + part < end; ++part) {
      visit(rows, part);
    }
  }
}

// --- Short convolution.

template <bool kSilu>
WEFT_INLINE void ConvolveLanes(const ShortConvArgs& args, const Rows& rows,
                               int64_t column, int lanes) {
  const int64_t window = args.window;
  float* state = rows.slot + column;
  const auto input = [&](int64_t row) WEFT_LAMBDA {
    if (row >= rows.begin) return LoadLanes(RowOf(args.x, row) + column, lanes);
    if (rows.starts) return F32x16{};
    return LoadLanes(state + (row - rows.begin + window) * args.columns, lanes);
  };
  const F32x16 bias =
      args.bias == nullptr ? F32x16{} : LoadLanes(args.bias + column, lanes);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    F32x16 sum = bias;
    for (int64_t i = 0; i <= window; ++i) {
      sum = MultiplyAdd(LoadLanes(args.taps + i * args.columns + column, lanes),
                        input(row - window + i), sum);
    }
    StoreLanes(ResultRow(args.run, row) + column, kSilu ? Silu(sum) : sum,
               lanes);
  }
  // In order: what is read is never before what was written.
  for (int64_t i = 0; i < window; ++i) {
    StoreLanes(state + i * args.columns, input(rows.end - window + i), lanes);
  }
}

template <bool kSilu>
void Convolve(const ShortConvArgs& args, int64_t begin, int64_t end) {
  const int64_t parts =
      (args.columns + kShortConvColumns - 1) / kShortConvColumns;
  ForItems(args.run, parts, begin, end, [&](const Rows& rows, int64_t part) {
    const int64_t first = part * kShortConvColumns;
    const int64_t last = first + kShortConvColumns < args.columns
                             ? first + kShortConvColumns
                             : args.columns;
    int64_t column = first;
    for (; column + 16 <= last; column += 16) {
      ConvolveLanes<kSilu>(args, rows, column, 16);
    }
    if (column < last) {
      ConvolveLanes<kSilu>(args, rows, column, static_cast<int>(last - column));
    }
  });
}

void ShortConv(const ShortConvArgs& args, int64_t begin, int64_t end) {
  if (args.silu) {
    Convolve<true>(args, begin, end);
  } else {
    Convolve<false>(args, begin, end);
  }
}

// --- Matrices.

// One panel of a head's matrix: 16 values (fewer are real) of all keys.
struct Panel {
  float* state;  // [keys][16]
  int64_t head;
  int64_t column;  // of its first value in a row of all heads' values
  int lanes;
};

WEFT_INLINE int64_t PanelsOf(int64_t values) {
  return (values + kMatrixPanel - 1) / kMatrixPanel;
}

WEFT_INLINE Panel PanelAt(const Rows& rows, int64_t part, int64_t keys,
                          int64_t values) {
  const int64_t panels = PanelsOf(values);
  const int64_t first = part % panels * kMatrixPanel;
  Panel panel;
  panel.head = part / panels;
  panel.state = rows.slot + part * keys * kMatrixPanel;
  panel.column = panel.head * values + first;
  panel.lanes = static_cast<int>(values - first < kMatrixPanel ? values - first
                                                               : kMatrixPanel);
  if (rows.starts) {
    memset(panel.state, 0,
           static_cast<size_t>(keys * kMatrixPanel) * sizeof(float));
  }
  return panel;
}

// The sums of key * state and the new state, once the change is known.
template <bool kByKey>
WEFT_INLINE void DeltaRulePanel(const DeltaRuleArgs& args, const Rows& rows,
                                const Panel& panel) {
  const int64_t keys = args.keys;
  const int64_t key_head = args.tiled
                               ? panel.head % args.key_heads
                               : panel.head / (args.heads / args.key_heads);
  const F32x16 scale = Splat(args.scale);
  float kept[kMaxHeadKeys + 16];
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* k = RowOf(args.k, row) + key_head * keys;
    const float* q = RowOf(args.q, row) + key_head * keys;
    const float* decay =
        RowOf(args.decay, row) + panel.head * (kByKey ? keys : 1);
    F32x16 kept_all = {};
    if (kByKey) {
      for (int64_t i = 0; i < keys; i += 16) {
        const int lanes = static_cast<int>(keys - i < 16 ? keys - i : 16);
        Store(kept + i, Exp(LoadLanes(decay + i, lanes)));
      }
    } else {
      kept_all = Exp(Splat(decay[0]));
    }
    const auto decayed = [&](int64_t i) WEFT_LAMBDA {
      return Load(panel.state + i * kMatrixPanel) *
             (kByKey ? Splat(kept[i]) : kept_all);
    };
    F32x16 sums[kSumParts] = {};
    const auto predict = [&](int64_t i, int part) WEFT_LAMBDA {
      sums[part] = MultiplyAdd(decayed(i), Splat(k[i]), sums[part]);
    };
    int64_t i = 0;
    for (; i + kSumParts <= keys; i += kSumParts) {
      predict(i, 0);
      predict(i + 1, 1);
      predict(i + 2, 2);
      predict(i + 3, 3);
    }
    for (; i < keys; ++i) predict(i, static_cast<int>(i % kSumParts));
    const F32x16 v = LoadLanes(RowOf(args.v, row) + panel.column, panel.lanes);
    const F32x16 change =
        Splat(RowOf(args.beta, row)[panel.head]) * (v - SumOfParts(sums));
    for (F32x16& sum : sums) sum = F32x16{};
    const auto update = [&](int64_t i, int part) WEFT_LAMBDA {
      const F32x16 s = MultiplyAdd(change, Splat(k[i]), decayed(i));
      Store(panel.state + i * kMatrixPanel, s);
      sums[part] = MultiplyAdd(s, Splat(q[i]), sums[part]);
    };
    for (i = 0; i + kSumParts <= keys; i += kSumParts) {
      update(i, 0);
      update(i + 1, 1);
      update(i + 2, 2);
      update(i + 3, 3);
    }
    for (; i < keys; ++i) update(i, static_cast<int>(i % kSumParts));
    StoreLanes(ResultRow(args.run, row) + panel.column,
               SumOfParts(sums) * scale, panel.lanes);
  }
}

void DeltaRule(const DeltaRuleArgs& args, int64_t begin, int64_t end) {
  ForItems(args.run, args.heads * PanelsOf(args.values), begin, end,
           [&](const Rows& rows, int64_t part) {
             const Panel panel = PanelAt(rows, part, args.keys, args.values);
             if (args.by_key) {
               DeltaRulePanel<true>(args, rows, panel);
             } else {
               DeltaRulePanel<false>(args, rows, panel);
             }
           });
}

template <bool kByValue>
WEFT_INLINE void ScanPanel(const SelectiveScanArgs& args, const Rows& rows,
                           const Panel& panel) {
  const int64_t keys = args.keys;
  const int64_t group = panel.head / (args.heads / args.groups);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* b = RowOf(args.b, row) + group * keys;
    const float* c = RowOf(args.c, row) + group * keys;
    const float* dt = RowOf(args.dt, row);
    const F32x16 x = LoadLanes(RowOf(args.x, row) + panel.column, panel.lanes);
    F32x16 step, skip, kept_all = {};
    if (kByValue) {
      step = LoadLanes(dt + panel.column, panel.lanes);
      skip = LoadLanes(args.d + panel.column, panel.lanes);
    } else {
      step = Splat(dt[panel.head]);
      skip = Splat(args.d[panel.head]);
      kept_all = Exp(step * Splat(args.a[panel.head]));
    }
    const F32x16 in = step * x;
    F32x16 sums[kSumParts] = {};
    const auto update = [&](int64_t i, int part) WEFT_LAMBDA {
      const F32x16 kept =
          kByValue
              ? Exp(step * LoadLanes(args.a + i * args.values + panel.column,
                                     panel.lanes))
              : kept_all;
      const F32x16 s = MultiplyAdd(in, Splat(b[i]),
                                   Load(panel.state + i * kMatrixPanel) * kept);
      Store(panel.state + i * kMatrixPanel, s);
      sums[part] = MultiplyAdd(s, Splat(c[i]), sums[part]);
    };
    int64_t i = 0;
    for (; i + kSumParts <= keys; i += kSumParts) {
      update(i, 0);
      update(i + 1, 1);
      update(i + 2, 2);
      update(i + 3, 3);
    }
    for (; i < keys; ++i) update(i, static_cast<int>(i % kSumParts));
    StoreLanes(ResultRow(args.run, row) + panel.column,
               MultiplyAdd(skip, x, SumOfParts(sums)), panel.lanes);
  }
}

void SelectiveScan(const SelectiveScanArgs& args, int64_t begin, int64_t end) {
  ForItems(args.run, args.heads * PanelsOf(args.values), begin, end,
           [&](const Rows& rows, int64_t part) {
             const Panel panel = PanelAt(rows, part, args.keys, args.values);
             if (args.by_value) {
               ScanPanel<true>(args, rows, panel);
             } else {
               ScanPanel<false>(args, rows, panel);
             }
           });
}

constexpr RecurrentKernel<ShortConvArgs> kShortConvKernels[] = {
    {"short_conv", ShortConv}};
constexpr RecurrentKernel<DeltaRuleArgs> kDeltaRuleKernels[] = {
    {"delta_rule", DeltaRule}};
constexpr RecurrentKernel<SelectiveScanArgs> kSelectiveScanKernels[] = {
    {"selective_scan", SelectiveScan}};

constexpr RecurrentKernels kRecurrentKernels = {
    .short_conv = ListOf(kShortConvKernels),
    .delta_rule = ListOf(kDeltaRuleKernels),
    .selective_scan = ListOf(kSelectiveScanKernels),
};

#undef WEFT_LAMBDA

}  // namespace
}  // namespace weft
