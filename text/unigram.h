// SentencePiece's Unigram model ("t5" in GGUF; XLM-RoBERTa's vocabulary): of
// all ways to cut a text into pieces, the one whose scores have the largest
// sum.
//
// First the text is normalised, by rules that the vocabulary brings along
// (charsmap.h); pieces that users defined pass as they are. Spaces become
// U+2581, and are made one where several stand together if the vocabulary says
// so. Then the best cut is found from left to right (Viterbi): of cuts with the
// same sum the first one stays. A character that no piece covers is unknown, or
// its bytes where the vocabulary has pieces for them; unknown ones that stand
// together are one token. Pieces that users defined score better than whatever
// else could stand there.
//
// The ids are those of SentencePiece (Kudo and Richardson 2018,
// arXiv:1808.06226, src/normalizer.cc and src/unigram_model.cc; the model: Kudo
// 2018, arXiv:1804.10959). Bytes that are no UTF-8 become U+FFFD one by one, so
// that decoding gives back normalised texts only.
//
// Work is in proportion to the text's bytes times the longest piece's
// (kLongestPiece); memory 16 bytes for each byte of the normalised text.
#pragma once

#include "text/tokenizer_family.h"

namespace weft {

// `vocabulary` has passed Tokenizer::Create's checks. It is not kept. Errors: a
// bad charsmap, pieces that are too long.
absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateUnigram(
    const Vocabulary& vocabulary);

}  // namespace weft
