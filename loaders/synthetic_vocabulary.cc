// Ids: 0 unknown, 1 begin, 2 end, 3-258 bytes, then pieces.
//
// Pieces are printable ASCII characters (the space as U+2581, as SentencePiece
// writes it), then strings of letters, shortest first, each without and with a
// space before it. Scores fall with the id, so shorter pieces merge first.

#include "loaders/synthetic_vocabulary.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {
namespace {

constexpr char kSpace[] = "\xe2\x96\x81";
// Values of `tokenizer.ggml.token_type`.
enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };

// The strings over a-z in order of length, then alphabet: 0 "a", 26 "aa", ...
std::string Letters(int64_t index) {
  std::string text;
  for (++index; index > 0; index = (index - 1) / 26) {
    text.insert(text.begin(), static_cast<char>('a' + (index - 1) % 26));
  }
  return text;
}

}  // namespace

void AddSyntheticVocabulary(int64_t size, GgufWriter* writer) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {kUnknown, kControl, kControl};
  std::vector<float> scores(3, 0.0f);
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(absl::StrFormat("<0x%02X>", byte));
    types.push_back(kByte);
    scores.push_back(0.0f);
  }
  const auto add = [&](std::string piece) {
    if (static_cast<int64_t>(tokens.size()) == size) return;
    scores.push_back(259.0f - static_cast<float>(tokens.size()));
    types.push_back(kNormal);
    tokens.push_back(std::move(piece));
  };
  add(kSpace);
  for (char c = '!'; c <= '~'; ++c) add(std::string(1, c));
  for (int64_t i = 0; static_cast<int64_t>(tokens.size()) < size; ++i) {
    std::string letters = Letters(i);
    const bool is_new = letters.size() > 1;  // single ones are in already
    const std::string spaced = absl::StrCat(kSpace, letters);
    if (is_new) add(std::move(letters));
    add(spaced);
  }

  writer->SetString("tokenizer.ggml.model", "llama");
  writer->SetStrings("tokenizer.ggml.tokens", tokens);
  writer->SetFloat32s("tokenizer.ggml.scores", scores);
  writer->SetInt32s("tokenizer.ggml.token_type", types);
  writer->SetUint32("tokenizer.ggml.bos_token_id", 1);
  writer->SetUint32("tokenizer.ggml.eos_token_id", 2);
  writer->SetUint32("tokenizer.ggml.unknown_token_id", 0);
  writer->SetBool("tokenizer.ggml.add_bos_token", true);
  writer->SetBool("tokenizer.ggml.add_eos_token", false);
}

}  // namespace weft
