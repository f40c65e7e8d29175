// SentencePiece's BPE ("llama" in GGUF): pieces of text are joined in order of
// the product's score, from single characters up; a character that is no token
// becomes its bytes, <0x00> to <0xFF>.
//
// Idea: U+2581, which vocabularies write for a space, is undone once, in the
// vocabulary; so text is worked on as it is, and a U+2581 that a user really
// wrote goes through the byte tokens and comes back as itself.
//
// Bytes that are not UTF-8 become their byte tokens, each on its own. A byte
// without a token becomes the unknown token; an error when there is none.
//
// Sources: Kudo and Richardson, "SentencePiece", 2018; Sennrich et al., 2016.
#pragma once

#include "text/tokenizer_family.h"

namespace weft {

// `vocabulary` has passed Tokenizer::Create's checks. It is not kept.
absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateSpm(
    const Vocabulary& vocabulary);

}  // namespace weft
