// tokenizer.json and what stands beside it, as the `tokenizer.*` keys of a
// file.
//
// Four kinds of models: byte-level BPE ("gpt2" in files), SentencePiece's BPE
// with tokens for bytes ("llama"), Unigram ("t5") and WordPiece ("bert"). The
// scores that SentencePiece had are in tokenizer.json no more, but their order
// is that of merges, and that is all that counts: a piece scores the better,
// the earlier it is merged.
//
// Folders without tokenizer.json may have tokenizer.model instead
// (sentencepiece_model.h), whose scores are taken as they are.
//
// Formats: the tokenizers library (huggingface/tokenizers) and transformers'
// tokenizer_config.json; keys: GGUF specification, and gguf-py's SpecialVocab
// for which of them says what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "loaders/convert/checkpoint_config.h"
#include "loaders/convert/vocabulary_source.h"
#include "loaders/gguf_writer.h"

namespace weft {

struct VocabularyRules {
  int64_t size = 0;  // rows of the embedding: so many tokens
  // In place of what tokenizer.json says; empty: that. Byte-level BPE only.
  std::string pre;
  // pretokenizer_name.h
  absl::string_view preferred_pre;
};

// Errors name the file and what is wrong in it: a kind of model that is not
// known, tokens without a number, numbers that are too large or given twice,
// merges of tokens that are not there, a normaliser that no reader has, numbers
// of bos_token_id or eos_token_id that are no tokens'.
absl::Status SetVocabulary(const VocabularySource& source,
                           const CheckpointConfig& config,
                           const VocabularyRules& rules, GgufWriter* writer,
                           std::vector<std::string>* warnings);

}  // namespace weft
