// The fused kernel's walk over pages and tiles, for any way to multiply.
// `Products` has
//   static void PackQueries(const Run&)           once, to run.q
//   Products(const Run&, int64_t page)
//   void Scores(begin, rows, float* scores)       [rows][64], unscaled
//   static void Weights(scores, rows, scale, updated, added)
//                                                 see TileWeights
//   void Outputs(begin, rows, visible, weights, factor)
//                                                 out = out * factor
//                                                       + weights * values
#pragma once

#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"

namespace weft {
namespace {

template <class Products>
void FusedRun(const Run& run) {
  const float cap = run.args->softcap;
  const bool scaled = cap > 0.0f || run.args->alibi > 0;
  const float scale = scaled ? kLog2E : run.args->scale * kLog2E;
  Products::PackQueries(run);
  ClearOutputs(run);
  ClearSums(run);
  if (run.args->sinks != nullptr) BeginWithSinks(run, scale);
  for (int64_t page = run.first_page; page < run.pages; ++page) {
    const Products products(run, page);
    for (int64_t tile = 0; tile < Tiles(run); ++tile) {
      const int64_t begin = TileBegin(run, tile);
      const int rows = static_cast<int>(TileBegin(run, tile + 1) - begin);
      const Visible visible = VisibleKeys(run, begin, rows, page);
      if (!visible.any) continue;
      alignas(64) float scores[kMostTileRows * kPageTokens];
      alignas(64) float added[kMostTileRows * 16], updated[16] = {}, factor[16];
      float* maximum = run.maximum + begin;
      products.Scores(begin, rows, scores);
      if (cap > 0.0f) CapScores(scores, rows, run.args->scale, cap);
      if (run.args->alibi > 0) {
        BiasScores(run, begin, rows, page, run.args->scale, scores);
      }
      TileMaxima(scores, rows, visible, maximum, updated);
      Products::Weights(scores, rows, scale, updated, added);
      TileFactors(rows, scale, updated, added, maximum, run.sum + begin * 16,
                  factor);
      products.Outputs(begin, rows, visible, scores, factor);
    }
  }
  StoreOutputs(run, run.sum);
}

}  // namespace
}  // namespace weft
