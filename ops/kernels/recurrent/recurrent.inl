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
  const int32_t slot = run.slots[row];
  while (rows.end < run.rows && run.slots[rows.end] == slot) ++rows.end;
  rows.slot =
      reinterpret_cast<float*>(run.state->pages + slot * run.state->page_bytes);
  return rows;
}

// Calls visit(rows, first, last) for work items [begin, end), `parts` for each
// run: those of one run together.
template <class Visit>
WEFT_INLINE void ForRanges(const RecurrentRun& run, int64_t parts,
                           int64_t begin, int64_t end, Visit visit) {
  int64_t first = 0;  // item
  for (int64_t row = 0; row < run.rows && first < end; first += parts) {
    const Rows rows = RowsFrom(run, row);
    row = rows.end;
    const int64_t from = begin > first ? begin - first : 0;
    const int64_t to = end - first < parts ? end - first : parts;
    if (from < to) visit(rows, from, to);
  }
}

// The same one by one: visit(rows, part).
template <class Visit>
WEFT_INLINE void ForItems(const RecurrentRun& run, int64_t parts, int64_t begin,
                          int64_t end, Visit visit) {
  ForRanges(run, parts, begin, end,
            [&](const Rows& rows, int64_t first, int64_t last) {
              for (int64_t part = first; part < last; ++part) {
                visit(rows, part);
              }
            });
}

// --- Short convolution.

// Columns [first, last) of a run, row by row: rows lie far apart, so what is
// next to each other is read together.
template <bool kSilu>
WEFT_INLINE void ConvolveColumns(const ShortConvArgs& args, const Rows& rows,
                                 int64_t first, int64_t last) {
  const int64_t window = args.window;
  const auto input = [&](int64_t row, int64_t column, int lanes) WEFT_LAMBDA {
    if (row >= rows.begin) {
      return LoadLanes(RowOf(args.x, row) + column, lanes);
    }
    if (rows.starts) return F32x16{};
    return LoadLanes(
        rows.slot + (row - rows.begin + window) * args.columns + column, lanes);
  };
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    float* y = ResultRow(args.run, row);
    const auto convolve = [&](int64_t column, int lanes) WEFT_LAMBDA {
      F32x16 sum = args.bias == nullptr ? F32x16{}
                                        : LoadLanes(args.bias + column, lanes);
      for (int64_t i = 0; i <= window; ++i) {
        sum =
            MultiplyAdd(LoadLanes(args.taps + i * args.columns + column, lanes),
                        input(row - window + i, column, lanes), sum);
      }
      StoreLanes(y + column, kSilu ? Silu(sum) : sum, lanes);
    };
    int64_t column = first;
    for (; column + 16 <= last; column += 16) convolve(column, 16);
    if (column < last) convolve(column, static_cast<int>(last - column));
  }
  // In order: what is read is never before what was written.
  for (int64_t i = 0; i < window; ++i) {
    for (int64_t column = first; column < last; column += 16) {
      const int lanes =
          static_cast<int>(last - column < 16 ? last - column : 16);
      StoreLanes(rows.slot + i * args.columns + column,
                 input(rows.end - window + i, column, lanes), lanes);
    }
  }
}

template <bool kSilu>
void Convolve(const ShortConvArgs& args, int64_t begin, int64_t end) {
  const int64_t parts =
      (args.columns + kShortConvColumns - 1) / kShortConvColumns;
  ForItems(args.run, parts, begin, end, [&](const Rows& rows, int64_t part) {
    const int64_t first = part * kShortConvColumns;
    const int64_t last = first + kShortConvColumns;
    ConvolveColumns<kSilu>(args, rows, first,
                           last < args.columns ? last : args.columns);
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

// Panels of a head that pass over the keys together: twice as many sums, of
// which none waits for another.
#if defined(__AVX512F__)
constexpr int kPanelsTogether = 2;
#else
constexpr int kPanelsTogether = 1;
#endif

// Calls step(key, part of the sums) for all keys.
template <class Step>
WEFT_INLINE void ForKeys(int64_t keys, Step step) {
  int64_t i = 0;
  for (; i + kSumParts <= keys; i += kSumParts) {
    step(i, 0);
    step(i + 1, 1);
    step(i + 2, 2);
    step(i + 3, 3);
  }
  for (; i < keys; ++i) step(i, static_cast<int>(i % kSumParts));
}

// What is kept of the states of a head in one row.
template <bool kByKey>
struct Kept {
  WEFT_INLINE void Fill(const float* decay, int64_t keys) {
    if constexpr (kByKey) {
      for (int64_t i = 0; i < keys; i += 16) {
        const int lanes = static_cast<int>(keys - i < 16 ? keys - i : 16);
        Store(by_key + i, Exp(LoadLanes(decay + i, lanes)));
      }
    } else {
      all = Exp(Splat(decay[0]));
    }
  }
  WEFT_INLINE F32x16 Of(int64_t i) const {
    if constexpr (kByKey) {
      return Splat(by_key[i]);
    } else {
      return all;
    }
  }
  F32x16 all;
  float by_key[kByKey ? kMaxHeadKeys + 16 : 1];
};

// The change is known once the sums of key * decayed state are. With the new
// state of an element goes what the next row begins with, its decay and its
// part of these sums: so each row passes over the state once. A row alone does
// so twice, and writes once.
template <bool kByKey, bool kAlone, int kPanels>
WEFT_INLINE void DeltaRulePanels(const DeltaRuleArgs& args, const Rows& rows,
                                 const Panel* panels) {
  const int64_t keys = args.keys;
  const int64_t head = panels[0].head;
  const int64_t key_head =
      args.tiled ? head % args.key_heads : head / (args.heads / args.key_heads);
  const F32x16 scale = Splat(args.scale);
  const auto key = [&](int64_t row) WEFT_LAMBDA {
    return RowOf(args.k, row) + key_head * keys;
  };
  Kept<kByKey> kept;
  const auto fill_kept = [&](int64_t row) WEFT_LAMBDA {
    kept.Fill(RowOf(args.decay, row) + head * (kByKey ? keys : 1), keys);
  };
  float* states[kPanels];
  for (int p = 0; p < kPanels; ++p) states[p] = panels[p].state;
  // Panels lie a multiple of 4 KiB apart: all are read before one is written,
  // since the processor takes such addresses for the same.
  const auto state = [&](int64_t i, int p)
                         WEFT_LAMBDA { return states[p] + i * kMatrixPanel; };
  F32x16 sums[kPanels][kSumParts] = {};

  fill_kept(rows.begin);
  const float* first = key(rows.begin);
  ForKeys(keys, [&](int64_t i, int part) WEFT_LAMBDA {
    F32x16 decayed[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      decayed[p] = Load(state(i, p)) * kept.Of(i);
      sums[p][part] = MultiplyAdd(decayed[p], Splat(first[i]), sums[p][part]);
    }
    if (kAlone) return;
    for (int p = 0; p < kPanels; ++p) Store(state(i, p), decayed[p]);
  });
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* k = key(row);
    const float* q = RowOf(args.q, row) + key_head * keys;
    F32x16 change[kPanels], results[kPanels][kSumParts] = {};
    for (int p = 0; p < kPanels; ++p) {
      const F32x16 v =
          LoadLanes(RowOf(args.v, row) + panels[p].column, panels[p].lanes);
      change[p] =
          Splat(RowOf(args.beta, row)[head]) * (v - SumOfParts(sums[p]));
    }
    // The new state of an element.
    const auto update = [&](int64_t i, int part, int p,
                            F32x16 decayed) WEFT_LAMBDA {
      const F32x16 s = MultiplyAdd(change[p], Splat(k[i]), decayed);
      results[p][part] = MultiplyAdd(s, Splat(q[i]), results[p][part]);
      return s;
    };
    if (!kAlone && row + 1 < rows.end) {
      fill_kept(row + 1);
      const float* next = key(row + 1);
      for (int p = 0; p < kPanels; ++p) {
        for (F32x16& sum : sums[p]) sum = F32x16{};
      }
      ForKeys(keys, [&](int64_t i, int part) WEFT_LAMBDA {
        F32x16 decayed[kPanels];
        for (int p = 0; p < kPanels; ++p) {
          decayed[p] = update(i, part, p, Load(state(i, p))) * kept.Of(i);
          sums[p][part] =
              MultiplyAdd(decayed[p], Splat(next[i]), sums[p][part]);
        }
        for (int p = 0; p < kPanels; ++p) Store(state(i, p), decayed[p]);
      });
    } else {
      ForKeys(keys, [&](int64_t i, int part) WEFT_LAMBDA {
        F32x16 s[kPanels];
        for (int p = 0; p < kPanels; ++p) {
          F32x16 decayed = Load(state(i, p));
          if (kAlone) decayed = decayed * kept.Of(i);
          s[p] = update(i, part, p, decayed);
        }
        for (int p = 0; p < kPanels; ++p) Store(state(i, p), s[p]);
      });
    }
    for (int p = 0; p < kPanels; ++p) {
      StoreLanes(ResultRow(args.run, row) + panels[p].column,
                 SumOfParts(results[p]) * scale, panels[p].lanes);
    }
  }
}

template <bool kByKey>
void DeltaRuleOf(const DeltaRuleArgs& args, int64_t begin, int64_t end) {
  const int64_t panels = PanelsOf(args.values);
  ForRanges(args.run, args.heads * panels, begin, end,
            [&](const Rows& rows, int64_t first, int64_t last) {
              const bool alone = rows.begin + 1 == rows.end;
              for (int64_t part = first; part < last; ++part) {
                Panel both[kPanelsTogether] = {
                    PanelAt(rows, part, args.keys, args.values)};
                if (alone) {
                  DeltaRulePanels<kByKey, true, 1>(args, rows, both);
                } else if (kPanelsTogether == 1 || part + 1 == last ||
                           (part + 1) % panels == 0) {
                  DeltaRulePanels<kByKey, false, 1>(args, rows, both);
                } else {
                  both[kPanelsTogether - 1] =
                      PanelAt(rows, ++part, args.keys, args.values);
                  DeltaRulePanels<kByKey, false, kPanelsTogether>(args, rows,
                                                                  both);
                }
              }
            });
}

void DeltaRule(const DeltaRuleArgs& args, int64_t begin, int64_t end) {
  if (args.by_key) {
    DeltaRuleOf<true>(args, begin, end);
  } else {
    DeltaRuleOf<false>(args, begin, end);
  }
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
