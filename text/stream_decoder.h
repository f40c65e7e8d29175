// Text from token ids as they come, never half a character.
//
// Idea: bytes of a character that is not yet whole are held back (at most
// three); all else goes out at once, ill-formed bytes as U+FFFD. The chunks and
// the final flush, joined, are exactly Tokenizer::Decode of all ids.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace weft {

class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options)
      : tokenizer_(tokenizer),
        options_(options),
        at_start_(!options.continues_text) {}

  // The text that `id` completes, possibly none; always well-formed UTF-8. An
  // id out of range is an error and changes nothing.
  absl::StatusOr<std::string> Push(int32_t id);

  // At the end: U+FFFD if a character was left unfinished, else nothing.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  DecodeOptions options_;
  bool at_start_;
  std::string pending_;
};

}  // namespace weft
