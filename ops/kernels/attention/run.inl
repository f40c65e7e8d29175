// One run: consecutive rows of one sequence, for one KV head or some of the
// heads that read it, with everything that attention keeps about them in thread
// scratch.
#pragma once

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/softmax.inl"
#include "ops/kernels/attention/tiles.inl"

namespace weft {
namespace {

// A query row is one token and one of the run's heads; the heads of a token are
// neighbours. Tiles of rows are cut evenly.
struct Run {
  const AttentionArgs* args;
  int64_t kv_head;
  int64_t first_head;
  int64_t first_token;
  int64_t group;  // heads
  int64_t rows;
  int64_t vectors;  // of one output, rounded up
  int64_t first;    // of the last positions that rows see
  int64_t last;
  int64_t last_own;    // of the rows' own positions
  int64_t first_page;  // that at least one row sees
  int64_t pages;       // up to the last that one sees
  // Pieces that are walked, to `last_piece` inclusive.
  int64_t first_piece, last_piece;
  // Thread scratch.
  float* out;         // [rows][vectors * 16]
  float* widened;     // [64][vectors * 16], see OpenValues
  float* q;           // tile by tile, [key_dim][rows of the tile]
  float* sum;         // [rows][16]
  float* maximum;     // [rows], and 16 more that may be read
  int32_t* position;  // [rows], the last that is seen
  int32_t* own;       // [rows]
  float* slope;       // [rows], with alibi
  float* whole;       // [rows][AttentionPartialFloats], where there are pieces
};

WEFT_INLINE int64_t Tiles(const Run& run) {
  return run.rows <= kMostTileRows ? 1 : (run.rows + kTileRows - 1) / kTileRows;
}

WEFT_INLINE int64_t TileBegin(const Run& run, int64_t tile) {
  return tile * run.rows / Tiles(run);
}

WEFT_INLINE int64_t TokenOf(const Run& run, int64_t row) {
  return run.first_token + row / run.group;
}

WEFT_INLINE int64_t HeadOf(const Run& run, int64_t row) {
  return run.first_head + row % run.group;
}

// See AttentionAttributes::alibi.
WEFT_INLINE float AlibiSlope(const AttentionArgs& args, int64_t head) {
  int64_t power = 1;
  while (power * 2 <= args.heads) power *= 2;
  const double step = args.alibi / static_cast<double>(power);
  const double exponent =
      head < power ? -step * static_cast<double>(head + 1)
                   : -step / 2 * static_cast<double>(2 * (head - power) + 1);
  return static_cast<float>(__builtin_exp2(exponent));
}

// The key of the page that stands at `position`; 0 or 64 where none does.
WEFT_INLINE int KeyAt(int64_t position, int64_t page) {
  const int64_t key = position - page * kPageTokens;
  return static_cast<int>(key < 0 ? 0 : key > kPageTokens ? kPageTokens : key);
}

WEFT_INLINE Visible VisibleKeys(const Run& run, int64_t begin, int rows,
                                int64_t page) {
  if (run.first + 1 >= (page + 1) * kPageTokens &&
      WindowBegin(*run.args, run.last_own) <= page * kPageTokens) {
    return kWholePage;
  }
  Visible visible = {0, kPageTokens, false, {}, {}};
  for (int r = 0; r < rows; ++r) {
    const int64_t position = run.position[begin + r];
    const int from = KeyAt(WindowBegin(*run.args, run.own[begin + r]), page);
    const int to = KeyAt(position + 1, page);
    visible.from[r] = from;
    visible.to[r] = to;
    visible.any |= from < to;
    if (from > visible.first) visible.first = from;
    if (to < visible.last) visible.last = to;
  }
  return visible;
}

template <KvType kType>
WEFT_INLINE const uint8_t* PageHead(const Run& run, const KvState& state,
                                    int64_t page, int64_t dims) {
  const AttentionArgs& args = *run.args;
  return KvPage(state, args.slots[run.first_token], page * kPageTokens) +
         run.kv_head * KvHeadBytes(kType, dims);
}

// Of the heads [head_begin, head_end), which read one KV head.
WEFT_INLINE Run StartRun(const AttentionArgs& args, int64_t head_begin,
                         int64_t head_end, int64_t token_begin,
                         int64_t token_end, uint8_t* scratch) {
  Run run;
  run.args = &args;
  run.kv_head = head_begin / (args.heads / args.kv_heads);
  run.first_head = head_begin;
  run.first_token = token_begin;
  run.group = head_end - head_begin;
  run.rows = (token_end - token_begin) * run.group;
  run.vectors = (args.value_dim + 15) / 16;
  run.first = run.last = LastSeen(args, token_begin);
  int64_t first_own = OwnPosition(args, token_begin);
  run.last_own = first_own;
  for (int64_t t = token_begin + 1; t < token_end; ++t) {
    const int64_t seen = LastSeen(args, t), own = OwnPosition(args, t);
    if (seen < run.first) run.first = seen;
    if (seen > run.last) run.last = seen;
    if (own < first_own) first_own = own;
    if (own > run.last_own) run.last_own = own;
  }
  run.first_page = WindowBegin(args, first_own) / kPageTokens;
  run.pages = run.last / kPageTokens + 1;
  run.first_piece = FirstPiece(args, first_own, run.first);
  run.last_piece = run.last / kPieceTokens;
  run.out = reinterpret_cast<float*>(scratch);
  run.widened = run.out + run.rows * run.vectors * 16;
  run.q = run.widened + kPageTokens * run.vectors * 16;
  run.sum = run.q + run.rows * args.key_dim;
  run.maximum = run.sum + run.rows * 16;
  run.position = reinterpret_cast<int32_t*>(run.maximum + run.rows + 16);
  run.own = run.position + run.rows;
  run.slope = reinterpret_cast<float*>(run.own + run.rows);
  run.whole = run.slope + run.rows;
  for (int64_t r = 0; r < run.rows; ++r) {
    const int64_t token = TokenOf(run, r);
    run.position[r] = static_cast<int32_t>(LastSeen(args, token));
    run.own[r] = static_cast<int32_t>(OwnPosition(args, token));
  }
  if (args.alibi > 0) {
    for (int64_t r = 0; r < run.rows; ++r) {
      run.slope[r] = AlibiSlope(args, HeadOf(run, r));
    }
  }
  return run;
}

// Calls run_one with every run of items [begin, end).
template <class RunOne>
WEFT_INLINE void ForRuns(const AttentionArgs& args, int64_t begin, int64_t end,
                         uint8_t* thread_scratch, RunOne run_one) {
  const int64_t block = AttentionBlockRows(args.heads, args.kv_heads);
  const int64_t blocks = AttentionBlocks(args.rows, args.heads, args.kv_heads);
  const int64_t parts = AttentionParts(args.rows, args.heads, args.kv_heads);
  const int64_t group = args.heads / args.kv_heads;
  const int64_t pieces = args.pieces > 0 ? args.pieces : 1;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t item = at / pieces, piece = args.first_piece + at % pieces;
    const int64_t kv_head = item / blocks / parts;
    const int64_t part = item / blocks % parts;
    const int64_t head_begin = kv_head * group + part * group / parts;
    const int64_t head_end = kv_head * group + (part + 1) * group / parts;
    const int64_t token_begin = item % blocks * block;
    int64_t token_end = token_begin + block;
    if (token_end > args.rows) token_end = args.rows;
    for (int64_t t = token_begin; t < token_end;) {
      int64_t stop = t + 1;
      while (stop < token_end && args.slots[stop] == args.slots[t]) {
        ++stop;
      }
      Run run = StartRun(args, head_begin, head_end, t, stop, thread_scratch);
      t = stop;
      if (args.pieces > 0) {
        if (piece < run.first_piece || piece > run.last_piece) continue;
        run.first_piece = run.last_piece = piece;
      }
      run_one(run);
    }
  }
}

WEFT_INLINE const float* QueryOf(const Run& run, int64_t row) {
  const AttentionArgs& args = *run.args;
  return reinterpret_cast<const float*>(
             reinterpret_cast<const uint8_t*>(args.q) +
             TokenOf(run, row) * args.q_row_bytes) +
         HeadOf(run, row) * args.key_dim;
}

// What a query row is multiplied by.
WEFT_INLINE float Temperature(const Run& run, int64_t row) {
  const AttentionArgs& args = *run.args;
  if (args.temperature == 0) return 1.0f;
  const int64_t periods =
      (run.own[row] + args.temperature_offset) / args.temperature_period;
  return static_cast<float>(
      1.0 +
      args.temperature * __builtin_log(1.0 + static_cast<double>(periods)));
}

WEFT_INLINE void PackQueries(const Run& run) {
  const AttentionArgs& args = *run.args;
  for (int64_t tile = 0; tile < Tiles(run); ++tile) {
    const int64_t begin = TileBegin(run, tile);
    const int64_t rows = TileBegin(run, tile + 1) - begin;
    float* packed = run.q + begin * args.key_dim;
    for (int64_t r = 0; r < rows; ++r) {
      const float* q = QueryOf(run, begin + r);
      const float factor = Temperature(run, begin + r);
      for (int64_t d = 0; d < args.key_dim; ++d) {
        packed[d * rows + r] = q[d] * factor;
      }
    }
  }
}

// Scores [rows][64] of a page, times scale, become less by the rows' distances.
WEFT_INLINE void BiasScores(const Run& run, int64_t begin, int rows,
                            int64_t page, float scale, float* scores) {
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (int r = 0; r < rows; ++r, scores += kPageTokens) {
    const F32x16 slope = Splat(-run.slope[begin + r]);
    const int32_t to_first = static_cast<int32_t>(
        page * kPageTokens - static_cast<int64_t>(run.own[begin + r]));
    for (int i = 0; i < kPageTokens; i += 16) {
      const F32x16 distance = Absolute(ToFloat(lane + (to_first + i)));
      Store(scores + i,
            MultiplyAdd(slope, distance, Load(scores + i) * Splat(scale)));
    }
  }
}

WEFT_INLINE void ClearOutputs(const Run& run) {
  for (int64_t i = 0; i < run.rows * run.vectors; ++i) {
    Store(run.out + i * 16, F32x16{});
  }
}

WEFT_INLINE void ClearSums(const Run& run) {
  for (int64_t r = 0; r < run.rows; ++r) {
    Store(run.sum + r * 16, F32x16{});
    run.maximum[r] = kNoMaximum;
  }
  for (int i = 0; i < 16; ++i) run.maximum[run.rows + i] = 0.0f;
}

// Rows begin their first piece with their head's sink, as if it were the score
// of a key whose value is 0. `scale` makes powers of two of scores.
WEFT_INLINE void BeginWithSinks(const Run& run, int64_t piece, float scale) {
  for (int64_t r = 0; r < run.rows; ++r) {
    if (FirstPiece(*run.args, run.own[r], run.position[r]) != piece) continue;
    const float score = run.args->sinks[HeadOf(run, r)] * kLog2E / scale;
    run.maximum[r] = score < kNoMaximum    ? kNoMaximum
                     : score > -kNoMaximum ? -kNoMaximum
                                           : score;
    run.sum[r * 16] = 1.0f;
  }
}

// y = out * factor for one token and head.
WEFT_INLINE void StoreOutput(const AttentionArgs& args, int64_t token,
                             int64_t head, const float* out, float factor) {
  float* y = reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(args.y) +
                                      token * args.y_row_bytes) +
             head * args.value_dim;
  for (int64_t i = 0; i < args.value_dim; i += 16) {
    const F32x16 v = Load(out + i) * Splat(factor);
    if (i + 16 <= args.value_dim) {
      Store(y + i, v);
    } else {
      StorePart(y + i, v, static_cast<int>(args.value_dim - i));
    }
  }
}

// y = out / the row's sum, if there are sums.
WEFT_INLINE void StoreOutputs(const Run& run, const float* sum) {
  for (int64_t r = 0; r < run.rows; ++r) {
    StoreOutput(*run.args, TokenOf(run, r), HeadOf(run, r),
                run.out + r * run.vectors * 16,
                sum == nullptr ? 1.0f : 1.0f / ReduceSum(Load(sum + r * 16)));
  }
}

// Adds what each row of a tile sees of a page to its output, in order of keys:
//   tile(first, last, factors)           all rows, those keys
//   one_row(r, from, to, factors + r)    one row
// Outputs are multiplied by the factors first: a row's, where it is first met,
// is factor[r], later 1. A row that sees nothing has factor 1.
template <class Tile, class OneRow>
WEFT_INLINE void AccumulateInOrder(int rows, const Visible& visible,
                                   const float* factor, Tile tile,
                                   OneRow one_row) {
  if (visible.Whole()) return tile(visible.first, visible.last, factor);
  float left[kMostTileRows];
  for (int r = 0; r < rows; ++r) left[r] = factor[r];
  const auto add = [&](int r, int from, int to) {
    if (from >= to) return;
    one_row(r, from, to, left + r);
    left[r] = 1.0f;
  };
  if (visible.first >= visible.last) {
    for (int r = 0; r < rows; ++r) add(r, visible.from[r], visible.to[r]);
    return;
  }
  for (int r = 0; r < rows; ++r) add(r, visible.from[r], visible.first);
  tile(visible.first, visible.last, left);
  for (int r = 0; r < rows; ++r) {
    left[r] = 1.0f;
    add(r, visible.last, visible.to[r]);
  }
}

// Values that are made into rows of full vectors of f32 first: those that are
// keys, and heads that do not fill vectors (reading past a head could leave the
// cache).
WEFT_INLINE bool WidensValues(const AttentionArgs& args) {
  return args.values_are_keys || args.value_dim % 16 != 0;
}

// The first dims numbers of `keys` keys of a page, row after row.
template <KvType kType>
WEFT_INLINE void TransposeKeys(const uint8_t* head, int64_t key_dim,
                               int64_t dims, int64_t keys, float* out,
                               int64_t stride) {
  const uint16_t* scales =
      reinterpret_cast<const uint16_t*>(head + key_dim * kPageTokens);
  for (int64_t d = 0; d < dims; d += kLanes) {
    for (int64_t key = 0; key < keys; key += kLanes) {
      Native block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const int64_t row = d + i;
        if (row >= dims) {
          block[i] = NativeZero();
          continue;
        }
        const int64_t from = (kPairs<kType> ? row / 2 : row) * kPageTokens;
        block[i] = LoadElements<kType>(
            head + (from + key) * kElementBytes<kType>, row);
        if (kType == KvType::kQ8_0) {
          block[i] =
              block[i] * NativeWidenF16(scales + row / 32 * kPageTokens + key);
        }
      }
      NativeTranspose(block);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        NativeStore(out + (key + i) * stride + d, block[i]);
      }
    }
  }
}

// The values of a page.
template <KvType kType>
WEFT_INLINE ValuePage OpenValues(const Run& run, int64_t page) {
  const AttentionArgs& args = *run.args;
  const int64_t dims = args.value_dim;
  const int64_t stride = run.vectors * 16;
  const uint8_t* const widened = reinterpret_cast<const uint8_t*>(run.widened);
  if (args.values_are_keys) {
    const uint8_t* keys =
        PageHead<kType>(run, *args.values, page, args.key_dim);
    TransposeKeys<kType>(keys, args.key_dim, dims, KeyAt(run.last + 1, page),
                         run.widened, stride);
    return {widened, widened, nullptr, stride * 4, 0};
  }
  const uint8_t* head = PageHead<kType>(run, *args.values, page, dims);
  if (WidensValues(args)) {
    for (int64_t key = 0; key < kPageTokens; ++key) {
      if (page * kPageTokens + key > run.last) break;
      for (int64_t v = 0; v * kLanes < dims; ++v) {
        const int64_t left = dims - v * kLanes;
        const int64_t row = kPairs<kType> ? key / 2 : key;
        uint8_t part[64] = {};
        memcpy(part, head + (row * dims + v * kLanes) * kElementBytes<kType>,
               static_cast<size_t>((left < kLanes ? left : kLanes) *
                                   kElementBytes<kType>));
        NativeStore(run.widened + key * stride + v * kLanes,
                    LoadElements<kType>(part, key));
      }
    }
    return {widened, widened, nullptr, stride * 4, 0};
  }
  const int64_t following = page + 1 < run.pages ? page + 1 : page;
  return {head, PageHead<kType>(run, *args.values, following, dims),
          reinterpret_cast<const uint16_t*>(head + dims * kPageTokens),
          dims * kElementBytes<kType>, dims / 32};
}

// Keys that all rows of the tile see go through one tile; what only some rows
// see, on the pages where they begin and end, goes row by row, before and
// after.
template <KvType kType>
WEFT_INLINE void AccumulateElements(const Run& run, int64_t begin, int rows,
                                    const Visible& visible, const float* p,
                                    const ValuePage& page,
                                    const float* factor) {
  const int64_t stride = run.vectors * 16;
  const int vectors = static_cast<int>(stride / kLanes);
  float* out = run.out + begin * stride;
  const auto tile = [&](int first, int last, const float* factors) {
    ValueTiles<kType>(rows, vectors, p, page, first, last, factors, out,
                      stride);
  };
  const auto one_row = [&](int r, int from, int to, const float* factors) {
    ValueVectors<kType, 1>(vectors, p + r * kPageTokens, page, from, to,
                           factors, out + r * stride, stride);
  };
  AccumulateInOrder(rows, visible, factor, tile, one_row);
}

// out = out * factor + p * values for one tile and page of OpenValues.
template <KvType kType>
WEFT_INLINE void AccumulateValues(const Run& run, int64_t begin, int rows,
                                  const Visible& visible, const float* p,
                                  const ValuePage& page, const float* factor) {
  if (WidensValues(*run.args)) {
    // Widened pages are f32 whatever the cache holds.
    AccumulateElements<KvType::kF32>(run, begin, rows, visible, p, page,
                                     factor);
  } else {
    AccumulateElements<kType>(run, begin, rows, visible, p, page, factor);
  }
}

}  // namespace
}  // namespace weft
