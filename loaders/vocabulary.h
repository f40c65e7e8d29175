// Reads a tokeniser's data (`tokenizer.*` keys) into a plain Vocabulary
// message.
//
// Key names and meanings: GGUF specification (ggml-org/ggml docs/gguf.md);
// defaults that the specification leaves open are those of llama.cpp, for which
// files are written:
//   model "llama": add_bos, add_space_prefix, bos 1, eos 2, unknown 0
//   model "gpt2":  neither; add_bos only for the pre-tokeniser of Llama 3
//   any other:     neither; text/ says by name what it cannot tokenise
// Thread-safe.
#pragma once

#include "absl/status/statusor.h"
#include "loaders/gguf_metadata.h"
#include "text/vocabulary.pb.h"

namespace weft {

// Guarantees: at least one token; scores and types are empty or one per token;
// special ids are -1 or inside the vocabulary (a padding id that is not counts
// as -1); names and the chat template are UTF-8. Errors name the key, what was
// found and what was expected.
absl::StatusOr<Vocabulary> ReadVocabulary(const GgufMetadata& file);

}  // namespace weft
