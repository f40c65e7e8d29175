// WordPiece, the tokeniser of BERT (Devlin et al. 2018, arXiv:1810.04805;
// Schuster and Nakajima 2012), for uncased vocabularies.
//
// A text becomes words: lower case, accents dropped (canonical decomposition
// without its marks), control characters dropped, cut at white space; each
// punctuation character and each CJK ideograph is a word of its own. A word is
// cut into the longest token that begins it, then the longest that continues
// it, and so on; where that fails, and where a word has more than 100
// characters, the whole word is the unknown token.
//
// Vocabularies mark the pieces of words in one of two ways: those that begin a
// word have U+2581 in front (model files), or those that continue one have "##"
// (BERT's own lists). What decoding gives back is the words, not the text.
#pragma once

#include "text/tokenizer_family.h"

namespace weft {

absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateWordpiece(
    const Vocabulary& vocabulary);

}  // namespace weft
