// A piece of a prompt and who wrote it: the model's own template, or whoever
// sent the messages. Tokenizer::EncodeSegments takes control tokens from the
// template's pieces alone, so that nobody can write himself another role.
#pragma once

#include <string>

namespace weft {

struct TextSegment {
  std::string text;  // UTF-8
  bool from_template = false;
};

}  // namespace weft
