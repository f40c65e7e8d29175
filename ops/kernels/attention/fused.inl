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

#include "ops/kernels/attention/pieces.inl"
#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"

namespace weft {
namespace {

// What the rows see of one piece, apart from all others.
template <class Products>
WEFT_INLINE void WalkPiece(const Run& run, int64_t piece, float scale) {
  const float cap = run.args->softcap;
  ClearOutputs(run);
  ClearSums(run);
  if (run.args->sinks != nullptr) BeginWithSinks(run, piece, scale);
  int64_t page = piece * kPiecePages, end = page + kPiecePages;
  if (page < run.first_page) page = run.first_page;
  if (end > run.pages) end = run.pages;
  for (; page < end; ++page) {
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
}

template <class Products>
void FusedRun(const Run& run) {
  const AttentionArgs& args = *run.args;
  const float scale = ExponentScale(args);
  const bool whole = args.pieces == 0 && run.first_piece == run.last_piece;
  Products::PackQueries(run);
  for (int64_t piece = run.first_piece; piece <= run.last_piece; ++piece) {
    WalkPiece<Products>(run, piece, scale);
    if (!whole) KeepPiece(run, piece, scale);
  }
  if (whole) return StoreOutputs(run, run.sum);
  if (args.pieces > 0) return;
  for (int64_t r = 0; r < run.rows; ++r) {
    StorePartial(
        args, TokenOf(run, r), HeadOf(run, r),
        PartialAt(run.whole + r * AttentionPartialFloats(args.value_dim),
                  run.vectors));
  }
}

}  // namespace
}  // namespace weft
