// Attention, written once; each attention_<isa>.cc includes this and defines
// its table. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/tiles.inl"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

constexpr int kPageVectors = kPageTokens / 16;

// Scores of one row in one page to weights relative to the new maximum; returns
// what the row's output so far must be multiplied by.
WEFT_INLINE float OnlineSoftmax(float* scores, int visible, float* maximum,
                                float* sum) {
  const I32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const F32x16 masked = Splat(-__builtin_inff());
  F32x16 s[kPageVectors];
  for (int v = 0; v < kPageVectors; ++v) {
    s[v] = Select(lane < visible - 16 * v, Load(scores + 16 * v), masked);
  }
  const float largest = ReduceMax(Max(Max(s[0], s[1]), Max(s[2], s[3])));
  const float updated = largest > *maximum ? largest : *maximum;
  for (int v = 0; v < kPageVectors; ++v) {
    s[v] = Exp(s[v] - Splat(updated));
    Store(scores + 16 * v, s[v]);
  }
  // Exp(0) is exactly 1.
  const float factor =
      updated == *maximum ? 1.0f : Exp(Splat(*maximum - updated))[0];
  *sum = *sum * factor + ReduceSum((s[0] + s[1]) + (s[2] + s[3]));
  *maximum = updated;
  return factor;
}

template <KvType kType>
void FusedRun(const Run& run) {
  const AttentionArgs& args = *run.args;
  // Widened pages are f32 whatever the cache holds.
  const bool widened = args.value_dim % 16 != 0;
  PackQueries(run);
  ClearOutputs(run);
  for (int64_t r = 0; r < run.rows; ++r) {
    run.maximum[r] = -__builtin_inff();
    run.sum[r] = 0.0f;
  }
  for (int64_t page = 0; page < run.pages; ++page) {
    const int64_t following = page + 1 < run.pages ? page + 1 : page;
    const uint8_t* keys = PageHead(run, *args.keys, page, args.key_dim);
    const uint8_t* next = PageHead(run, *args.keys, following, args.key_dim);
    const ValuePage values = OpenValues<kType>(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int64_t rows = TileBegin(run, tile + 1) - begin;
      int most = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const int visible = VisibleKeys(run, begin + r, page);
        if (visible > most) most = visible;
      }
      if (most == 0) continue;
      alignas(64) float p[kTileRows * kPageTokens];
      float factor[kTileRows];
      KeyTiles<kType>(static_cast<int>(rows), run.q + begin * args.key_dim,
                      keys, next, args.key_dim, args.scale, p);
      for (int64_t r = 0; r < rows; ++r) {
        const int visible = VisibleKeys(run, begin + r, page);
        if (visible == 0) continue;
        factor[r] = OnlineSoftmax(p + r * kPageTokens, visible,
                                  run.maximum + begin + r, run.sum + begin + r);
      }
      if (widened) {
        AccumulateValues<KvType::kF32>(run, begin, rows, page, p, values,
                                       factor);
      } else {
        AccumulateValues<kType>(run, begin, rows, page, p, values, factor);
      }
    }
  }
  StoreOutputs(run, run.sum);
}

WEFT_INLINE float* ScoreRow(const Run& run, int64_t row) {
  const AttentionArgs& args = *run.args;
  return args.scores + (TokenOf(run, row) * args.heads + HeadOf(run, row)) *
                           args.score_columns;
}

template <KvType kType>
void ScoresRun(const Run& run) {
  const AttentionArgs& args = *run.args;
  PackQueries(run);
  for (int64_t tile = 0; tile < Tiles(run); ++tile) {
    const int64_t begin = TileBegin(run, tile);
    const int64_t rows = TileBegin(run, tile + 1) - begin;
    for (int64_t page = 0; page < run.pages; ++page) {
      alignas(64) float p[kTileRows * kPageTokens];
      const uint8_t* keys = PageHead(run, *args.keys, page, args.key_dim);
      KeyTiles<kType>(static_cast<int>(rows), run.q + begin * args.key_dim,
                      keys, keys, args.key_dim, args.scale, p);
      for (int64_t r = 0; r < rows; ++r) {
        memcpy(ScoreRow(run, begin + r) + page * kPageTokens,
               p + r * kPageTokens,
               static_cast<size_t>(VisibleKeys(run, begin + r, page)) * 4);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* row = ScoreRow(run, begin + r);
      for (int64_t i = PositionOf(run, begin + r) + 1; i < args.score_columns;
           ++i) {
        row[i] = -__builtin_inff();
      }
    }
  }
}

template <KvType kType>
void ValuesRun(const Run& run) {
  const bool widened = run.args->value_dim % 16 != 0;
  float ones[kTileRows];
  for (float& one : ones) one = 1.0f;
  ClearOutputs(run);
  for (int64_t page = 0; page < run.pages; ++page) {
    const ValuePage values = OpenValues<kType>(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int64_t rows = TileBegin(run, tile + 1) - begin;
      float p[kTileRows * kPageTokens];
      for (int64_t r = 0; r < rows; ++r) {
        memcpy(p + r * kPageTokens,
               ScoreRow(run, begin + r) + page * kPageTokens,
               static_cast<size_t>(VisibleKeys(run, begin + r, page)) * 4);
      }
      if (widened) {
        AccumulateValues<KvType::kF32>(run, begin, rows, page, p, values, ones);
      } else {
        AccumulateValues<kType>(run, begin, rows, page, p, values, ones);
      }
    }
  }
  StoreOutputs(run, nullptr);
}

enum class Part { kFused, kScores, kValues };

template <Part kPart, KvType kType>
WEFT_INLINE void RunPart(const Run& run) {
  if (kPart == Part::kFused) {
    FusedRun<kType>(run);
  } else if (kPart == Part::kScores) {
    ScoresRun<kType>(run);
  } else {
    ValuesRun<kType>(run);
  }
}

template <Part kPart>
void RunItems(const AttentionArgs& args, int64_t begin, int64_t end,
              uint8_t* thread_scratch) {
  const int64_t block = AttentionBlockRows(args.heads, args.kv_heads);
  const int64_t blocks = (args.rows + block - 1) / block;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t token_begin = item % blocks * block;
    int64_t token_end = token_begin + block;
    if (token_end > args.rows) token_end = args.rows;
    for (int64_t t = token_begin; t < token_end;) {
      int64_t stop = t + 1;
      while (stop < token_end && args.sequence[stop] == args.sequence[t]) {
        ++stop;
      }
      const Run run = StartRun(args, item / blocks, t, stop, thread_scratch);
      switch (args.type) {
        case KvType::kF32:
          RunPart<kPart, KvType::kF32>(run);
          break;
        case KvType::kF16:
          RunPart<kPart, KvType::kF16>(run);
          break;
        case KvType::kBF16:
          RunPart<kPart, KvType::kBF16>(run);
          break;
        case KvType::kQ8_0:
          RunPart<kPart, KvType::kQ8_0>(run);
          break;
      }
      t = stop;
    }
  }
}

constexpr AttentionKernels kAttentionKernels = {
    RunItems<Part::kFused>, RunItems<Part::kScores>, RunItems<Part::kValues>};

}  // namespace
}  // namespace weft
