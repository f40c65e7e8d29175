// Fuzz target: any bytes as rules of normalisation, and as text, either give an
// error or ids of the vocabulary.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  weft::Vocabulary vocabulary;
  vocabulary.set_model("t5");
  vocabulary.set_bos(-1);
  vocabulary.set_eos(1);
  vocabulary.set_unknown(0);
  vocabulary.set_padding(-1);
  vocabulary.set_separator(-1);
  vocabulary.set_end_of_turn(-1);
  float score = 0;
  for (const char* piece :
       {"<unk>", "</s>", "\u2581", "a", "e", "\u2581th", "e\u2581", "\x80"}) {
    vocabulary.add_tokens(piece);
    vocabulary.add_scores(--score);
    vocabulary.add_types(vocabulary.tokens_size() == 1
                             ? weft::Vocabulary::UNKNOWN
                             : weft::Vocabulary::NORMAL);
  }
  vocabulary.set_add_space_prefix(size % 2 == 0);
  vocabulary.set_remove_extra_whitespaces(size % 3 == 0);
  for (const bool rules : {false, true}) {
    if (rules) vocabulary.set_charsmap(data, size);
    const auto tokenizer = weft::Tokenizer::Create(vocabulary);
    if (!tokenizer.ok()) continue;
    for (const absl::string_view text :
         {bytes, absl::string_view("  the e\u0301ea... \u3000\ufb01 \xff")}) {
      const auto ids = (*tokenizer)->Encode(text, {});
      if (!ids.ok()) continue;
      for (const int32_t id : *ids) {
        if (!(*tokenizer)->InRange(id)) std::abort();
      }
    }
  }
  return 0;
}
