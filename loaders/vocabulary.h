// Reads a tokeniser's data (`tokenizer.*` keys) into a plain Vocabulary
// message.
//
// Key names and meanings: GGUF specification (ggml-org/ggml docs/gguf.md);
// defaults that the specification leaves open are those of llama.cpp, for which
// files are written: one table (kDefaults), a row for each tokeniser model. Of
// one without a row text/ says by name that it cannot tokenise it.
// Thread-safe.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "loaders/gguf_metadata.h"
#include "text/vocabulary.pb.h"

namespace weft {

struct VocabularyOptions {
  // In place of the file's tokenizer.ggml.pre; empty: the file's. An error for
  // models that have no pre-tokeniser. Whether there is one of this name is the
  // tokeniser's to say.
  std::string pre;
  // Told, in one line, of what makes a vocabulary doubtful.
  std::function<void(const std::string& warning)> warn = nullptr;
};

// Guarantees: at least one token; scores and types are empty or one per token;
// special ids are -1 or inside the vocabulary (a padding id that is not counts
// as -1); names and the chat template are UTF-8. Errors name the key, what was
// found and what was expected.
absl::StatusOr<Vocabulary> ReadVocabulary(
    const GgufMetadata& file, const VocabularyOptions& options = {});

}  // namespace weft
