// Attention, written once; each attention_<isa>.cc includes this and defines
// its table. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"
#include "ops/kernels/attention/tiles.inl"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

template <KvType kType>
void FusedRun(const Run& run) {
  const AttentionArgs& args = *run.args;
  // Widened pages are f32 whatever the cache holds.
  const bool widened = args.value_dim % 16 != 0;
  const float scale = args.scale * kLog2E;
  PackQueries(run);
  ClearOutputs(run);
  ClearSums(run);
  for (int64_t page = 0; page < run.pages; ++page) {
    const int64_t following = page + 1 < run.pages ? page + 1 : page;
    const uint8_t* keys = PageHead(run, *args.keys, page, args.key_dim);
    const uint8_t* next = PageHead(run, *args.keys, following, args.key_dim);
    const ValuePage values = OpenValues<kType>(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int rows = static_cast<int>(TileBegin(run, tile + 1) - begin);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      if (visible.most == 0) continue;
      alignas(64) float p[kMostTileRows * kPageTokens];
      alignas(64) float added[kMostTileRows * 16], updated[16] = {}, factor[16];
      float* maximum = run.maximum + begin;
      KeyTiles<kType>(rows, run.q + begin * args.key_dim, keys, next,
                      args.key_dim, 1.0f, p);
      TileMaxima(p, rows, visible, scale, maximum, updated);
      TileWeights(p, rows, scale, updated, added);
      TileFactors(rows, updated, added, maximum, run.sum + begin * 16, factor);
      if (widened) {
        AccumulateValues<KvType::kF32>(run, begin, rows, visible, p, values,
                                       factor);
      } else {
        AccumulateValues<kType>(run, begin, rows, visible, p, values, factor);
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
    const int rows = static_cast<int>(TileBegin(run, tile + 1) - begin);
    for (int64_t page = 0; page < run.pages; ++page) {
      alignas(64) float p[kMostTileRows * kPageTokens];
      const uint8_t* keys = PageHead(run, *args.keys, page, args.key_dim);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      KeyTiles<kType>(rows, run.q + begin * args.key_dim, keys, keys,
                      args.key_dim, args.scale, p);
      for (int r = 0; r < rows; ++r) {
        memcpy(ScoreRow(run, begin + r) + page * kPageTokens,
               p + r * kPageTokens, static_cast<size_t>(visible.of[r]) * 4);
      }
    }
    for (int r = 0; r < rows; ++r) {
      float* row = ScoreRow(run, begin + r);
      for (int64_t i = run.position[begin + r] + 1; i < args.score_columns;
           ++i) {
        row[i] = -__builtin_inff();
      }
    }
  }
}

template <KvType kType>
void ValuesRun(const Run& run) {
  const bool widened = run.args->value_dim % 16 != 0;
  float ones[kMostTileRows];
  for (float& one : ones) one = 1.0f;
  ClearOutputs(run);
  for (int64_t page = 0; page < run.pages; ++page) {
    const ValuePage values = OpenValues<kType>(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int rows = static_cast<int>(TileBegin(run, tile + 1) - begin);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      float p[kMostTileRows * kPageTokens];
      for (int r = 0; r < rows; ++r) {
        memcpy(p + r * kPageTokens,
               ScoreRow(run, begin + r) + page * kPageTokens,
               static_cast<size_t>(visible.of[r]) * 4);
      }
      if (widened) {
        AccumulateValues<KvType::kF32>(run, begin, rows, visible, p, values,
                                       ones);
      } else {
        AccumulateValues<kType>(run, begin, rows, visible, p, values, ones);
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
