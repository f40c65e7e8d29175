// Pieces of what rows see, put together in order (attention.h): each has its
// outputs, sums and maximum, relative to nothing of the others.
#pragma once

#include "ops/kernels/attention/run.inl"
#include "ops/kernels/attention/softmax.inl"

namespace weft {
namespace {

// What makes powers of two of scores.
WEFT_INLINE float ExponentScale(const AttentionArgs& args) {
  const bool scaled = args.softcap > 0.0f || args.alibi > 0;
  return scaled ? kLog2E : args.scale * kLog2E;
}

// A row's state: AttentionPartialFloats numbers.
struct Partial {
  float* out;      // [vectors * 16]
  float* sum;      // [16]
  float* maximum;  // [1]
};

WEFT_INLINE Partial PartialAt(float* data, int64_t vectors) {
  return {data, data + vectors * 16, data + (vectors + 1) * 16};
}

// What `row` of the run has after a piece.
WEFT_INLINE Partial PartialOf(const Run& run, int64_t row) {
  return {run.out + row * run.vectors * 16, run.sum + row * 16,
          run.maximum + row};
}

WEFT_INLINE void CopyPartial(const Partial& from, int64_t vectors,
                             const Partial& to) {
  for (int64_t i = 0; i < vectors; ++i) {
    Store(to.out + i * 16, Load(from.out + i * 16));
  }
  Store(to.sum, Load(from.sum));
  *to.maximum = *from.maximum;
}

// whole = whole and the piece behind it.
WEFT_INLINE void AddPartial(const Partial& piece, int64_t vectors, float scale,
                            const Partial& whole) {
  const float updated =
      *piece.maximum > *whole.maximum ? *piece.maximum : *whole.maximum;
  const F32x16 before =
      FactorTo(Splat(*whole.maximum), Splat(updated), Splat(scale));
  const F32x16 added =
      FactorTo(Splat(*piece.maximum), Splat(updated), Splat(scale));
  for (int64_t i = 0; i < vectors * 16; i += 16) {
    Store(whole.out + i, MultiplyAdd(Load(piece.out + i), added,
                                     Load(whole.out + i) * before));
  }
  Store(whole.sum,
        MultiplyAdd(Load(piece.sum), added, Load(whole.sum) * before));
  *whole.maximum = updated;
}

// Where args.partial has a piece of a row.
WEFT_INLINE Partial PartialIn(const AttentionArgs& args, int64_t token,
                              int64_t head, int64_t piece) {
  const int64_t at =
      (token * args.heads + head) * args.pieces + piece - args.first_piece;
  return PartialAt(args.partial + at * AttentionPartialFloats(args.value_dim),
                   (args.value_dim + 15) / 16);
}

// Takes what the rows have after a piece that they see: to args.partial where
// pieces are items, else behind what the rows had before.
WEFT_INLINE void KeepPiece(const Run& run, int64_t piece, float scale) {
  const AttentionArgs& args = *run.args;
  for (int64_t r = 0; r < run.rows; ++r) {
    const int64_t last = run.position[r];
    const int64_t first_piece = FirstPiece(args, run.own[r], last);
    if (piece < first_piece || piece > last / kPieceTokens) continue;
    const Partial own = PartialOf(run, r);
    if (args.pieces > 0) {
      CopyPartial(own, run.vectors,
                  PartialIn(args, TokenOf(run, r), HeadOf(run, r), piece));
      continue;
    }
    const Partial whole = PartialAt(
        run.whole + r * AttentionPartialFloats(args.value_dim), run.vectors);
    if (piece == first_piece) {
      CopyPartial(own, run.vectors, whole);
    } else {
      AddPartial(own, run.vectors, scale, whole);
    }
  }
}

WEFT_INLINE void StorePartial(const AttentionArgs& args, int64_t token,
                              int64_t head, const Partial& whole) {
  StoreOutput(args, token, head, whole.out, 1.0f / ReduceSum(Load(whole.sum)));
}

// The second phase of a call whose pieces are items: one token and head each.
void CombinePieces(const AttentionArgs& args, int64_t begin, int64_t end,
                   uint8_t*) {
  const int64_t vectors = (args.value_dim + 15) / 16;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t token = item / args.heads, head = item % args.heads;
    const int64_t last = LastSeen(args, token);
    const int64_t first_piece =
        FirstPiece(args, OwnPosition(args, token), last);
    const Partial whole = PartialIn(args, token, head, first_piece);
    for (int64_t piece = first_piece + 1; piece <= last / kPieceTokens;
         ++piece) {
      AddPartial(PartialIn(args, token, head, piece), vectors,
                 ExponentScale(args), whole);
    }
    StorePartial(args, token, head, whole);
  }
}

}  // namespace
}  // namespace weft
