// tokenizer.model, as SentencePiece writes it: the vocabulary of older folders,
// which have no tokenizer.json.
//
// Limits: BPE with spaces as U+2581 and nothing else done to texts, as LLaMA 2
// and its relatives have it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    int type = 1;  // as in `tokenizer.ggml.token_type`
  };
  std::vector<Piece> pieces;  // by their numbers
  bool prefixed = true;       // a space stands before each text
};

// Errors name the file: damaged, too large, no pieces, pieces that are no UTF-8
// or have no finite score, and whatever is beyond the limits above.
absl::StatusOr<SentencePieceModel> ReadSentencePieceModel(
    const std::string& path);

}  // namespace weft
