// Byte-level BPE ("gpt2" in GGUF): a pre-tokeniser cuts the text into pieces;
// in each, bytes are joined by the vocabulary's list of merges, lowest rank
// first.
//
// Idea: vocabularies write each byte as one printable character (GPT-2's
// table); that is undone once, here, so that text is worked on as plain bytes.
// Symbols are numbered (tokens by their ids, products that are no tokens after
// them), and a merge is a look-up of a pair of numbers.
//
// Bytes that are not UTF-8 are kept out of the pre-tokeniser, each ill-formed
// part a piece of its own. A byte without a token (published vocabularies lack
// some control characters and rare lead bytes) becomes U+FFFD; where that
// cannot be written, the unknown token; an error when there is none. The space
// prefix is SentencePiece's: this family puts none.
//
// Sources: Sennrich et al., 2016; Radford et al. (GPT-2), 2019.
#pragma once

#include "text/tokenizer_family.h"

namespace weft {

// `vocabulary` has passed Tokenizer::Create's checks. It is not kept.
absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateBpe(
    const Vocabulary& vocabulary);

}  // namespace weft
