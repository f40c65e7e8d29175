// Attention, written once; each attention_<isa>.cc includes this and defines
// its lists. Everything is in an unnamed namespace: see vector.h.
#pragma once

#include "ops/kernels/attention/attention.h"
#include "ops/kernels/attention/fused.inl"
#include "ops/kernels/attention/pieces.inl"
#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"
#include "ops/kernels/attention/tiles.inl"
#include "ops/kernels/vector.h"

namespace weft {
namespace {

// Products of elements widened to f32: see FusedRun.
template <KvType kType>
class WidenedProducts {
 public:
  static void PackQueries(const Run& run) { weft::PackQueries(run); }

  WidenedProducts(const Run& run, int64_t page)
      : run_(run), values_(OpenValues<kType>(run, page)) {
    const AttentionArgs& args = *run.args;
    const int64_t following = page + 1 < run.pages ? page + 1 : page;
    keys_ = PageHead<kType>(run, *args.keys, page, args.key_dim);
    next_keys_ = PageHead<kType>(run, *args.keys, following, args.key_dim);
  }

  void Scores(int64_t begin, int rows, float* scores) const {
    const int64_t dims = run_.args->key_dim;
    KeyTiles<kType>(rows, run_.q + begin * dims, keys_, next_keys_, dims, 1.0f,
                    scores);
  }

  static void Weights(float* scores, int rows, float scale,
                      const float* updated, float* added) {
    TileWeights(scores, rows, scale, updated, added);
  }

  void Outputs(int64_t begin, int rows, const Visible& visible,
               const float* weights, const float* factor) const {
    AccumulateValues<kType>(run_, begin, rows, visible, weights, values_,
                            factor);
  }

 private:
  const Run& run_;
  const ValuePage values_;
  const uint8_t* keys_;
  const uint8_t* next_keys_;
};

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
    for (int64_t page = run.first_page; page < run.pages; ++page) {
      alignas(64) float p[kMostTileRows * kPageTokens];
      const uint8_t* keys =
          PageHead<kType>(run, *args.keys, page, args.key_dim);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      KeyTiles<kType>(rows, run.q + begin * args.key_dim, keys, keys,
                      args.key_dim, args.scale, p);
      if (args.softcap > 0.0f) CapScores(p, rows, 1.0f, args.softcap);
      if (args.alibi > 0) BiasScores(run, begin, rows, page, 1.0f, p);
      for (int r = 0; r < rows; ++r) {
        const int from = visible.from[r], to = visible.to[r];
        if (from >= to) continue;
        memcpy(ScoreRow(run, begin + r) + page * kPageTokens + from,
               p + r * kPageTokens + from,
               static_cast<size_t>(to - from) * sizeof(float));
      }
    }
    for (int r = 0; r < rows; ++r) {
      float* row = ScoreRow(run, begin + r);
      const int64_t position = run.position[begin + r];
      const int64_t first = WindowBegin(args, run.own[begin + r]);
      for (int64_t i = 0; i < first; ++i) row[i] = -__builtin_inff();
      for (int64_t i = position + 1; i < args.score_columns; ++i) {
        row[i] = -__builtin_inff();
      }
    }
  }
}

template <KvType kType>
void ValuesRun(const Run& run) {
  float ones[kMostTileRows];
  for (float& one : ones) one = 1.0f;
  ClearOutputs(run);
  for (int64_t page = run.first_page; page < run.pages; ++page) {
    const ValuePage values = OpenValues<kType>(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int rows = static_cast<int>(TileBegin(run, tile + 1) - begin);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      float p[kMostTileRows * kPageTokens];
      for (int r = 0; r < rows; ++r) {
        memcpy(p + r * kPageTokens,
               ScoreRow(run, begin + r) + page * kPageTokens,
               static_cast<size_t>(visible.to[r]) * 4);
      }
      AccumulateValues<kType>(run, begin, rows, visible, p, values, ones);
    }
  }
  StoreOutputs(run, nullptr);
}

template <void (*kRunOne)(const Run&)>
void RunItems(const AttentionArgs& args, int64_t begin, int64_t end,
              uint8_t* thread_scratch) {
  ForRuns(args, begin, end, thread_scratch, kRunOne);
}

constexpr AttentionKernel kFusedKernels[] = {
    {"attention", KvType::kF32,
     RunItems<FusedRun<WidenedProducts<KvType::kF32>>>, CombinePieces},
    {"attention", KvType::kF16,
     RunItems<FusedRun<WidenedProducts<KvType::kF16>>>, CombinePieces},
    {"attention", KvType::kBF16,
     RunItems<FusedRun<WidenedProducts<KvType::kBF16>>>, CombinePieces},
    {"attention", KvType::kQ8_0,
     RunItems<FusedRun<WidenedProducts<KvType::kQ8_0>>>, CombinePieces},
};

constexpr AttentionKernel kScoresKernels[] = {
    {"attention_scores", KvType::kF32, RunItems<ScoresRun<KvType::kF32>>},
    {"attention_scores", KvType::kF16, RunItems<ScoresRun<KvType::kF16>>},
    {"attention_scores", KvType::kBF16, RunItems<ScoresRun<KvType::kBF16>>},
    {"attention_scores", KvType::kQ8_0, RunItems<ScoresRun<KvType::kQ8_0>>},
};

constexpr AttentionKernel kValuesKernels[] = {
    {"attention_values", KvType::kF32, RunItems<ValuesRun<KvType::kF32>>},
    {"attention_values", KvType::kF16, RunItems<ValuesRun<KvType::kF16>>},
    {"attention_values", KvType::kBF16, RunItems<ValuesRun<KvType::kBF16>>},
    {"attention_values", KvType::kQ8_0, RunItems<ValuesRun<KvType::kQ8_0>>},
};

constexpr AttentionKernels kAttentionKernels = {
    .fused = ListOf(kFusedKernels),
    .scores = ListOf(kScoresKernels),
    .values = ListOf(kValuesKernels),
};

}  // namespace
}  // namespace weft
