// What token masks cost: a JSON text is walked token by token under JSON mode
// and under a schema; the mask is asked for before each token, as a sampler
// would.
//   masks SIZE        a made-up byte-level vocabulary of this size
//   masks FILE.gguf   the vocabulary of a file
// Prints microseconds: of a mask on the first walk (states are new: the
// vocabulary is walked) and on the second one, by another sequence.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "loaders/gguf.h"
#include "loaders/vocabulary.h"
#include "nlohmann/json.hpp"
#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"
#include "text/tokenizer.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kText[] =
    R"({"name": "Ada Lovelace", "born": 1815, "tags": ["mathematics", )"
    R"("engines", "poetry \"of\" science"], "friends": [{"name": )"
    R"("Charles Babbage", "born": 1791, "tags": []}, {"name": "Mary )"
    R"(Somerville", "born": 1780, "tags": ["astronomy"]}]})";
constexpr char kSchema[] = R"({"$ref": "#/$defs/person", "$defs": {"person": {
    "type": "object", "properties": {"name": {"type": "string"},
    "born": {"type": "integer", "minimum": 0, "maximum": 2100},
    "tags": {"type": "array", "items": {"type": "string"}},
    "friends": {"type": "array", "items": {"$ref": "#/$defs/person"}}},
    "required": ["name", "born", "tags"]}}})";

// Every byte, words with and without a space before them, and runs of
// punctuation, one in ten.
Vocabulary MadeUp(int size) {
  Vocabulary vocabulary;
  vocabulary.set_model("llama");
  vocabulary.set_bos(-1);
  vocabulary.set_unknown(-1);
  vocabulary.set_separator(-1);
  vocabulary.set_padding(-1);
  vocabulary.set_end_of_turn(-1);
  vocabulary.set_add_space_prefix(false);
  const auto add = [&](const std::string& text, Vocabulary::TokenType type) {
    vocabulary.add_tokens(text);
    vocabulary.add_types(type);
    vocabulary.add_scores(-vocabulary.tokens_size());
  };
  add("</s>", Vocabulary::CONTROL);
  vocabulary.set_eos(0);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    add(text, Vocabulary::BYTE);
  }
  std::mt19937 random(1);
  const auto one_of = [&](absl::string_view letters) {
    return letters[random() % letters.size()];
  };
  while (vocabulary.tokens_size() < size) {
    std::string text;
    if (random() % 10 == 0) {
      for (int n = 1 + random() % 4; n > 0; --n) {
        text += one_of("\"\"\",,::{}[]()<>=;.-_/\\'\n\t #");
      }
    } else {
      if (random() % 2 == 0) text += "\u2581";
      for (int n = 1 + random() % 9; n > 0; --n) {
        text += one_of("eeeetttaaooiinnsshhrrddllcumwfgypbvkjxqzES0129");
      }
    }
    add(text, Vocabulary::NORMAL);
  }
  return vocabulary;
}

absl::StatusOr<Vocabulary> VocabularyOf(const std::string& argument) {
  int size = 0;
  if (absl::SimpleAtoi(argument, &size)) return MadeUp(size);
  WEFT_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(argument));
  return ReadVocabulary(file);
}

double Microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

void Walk(const char* what, grammar::Grammar& grammar,
          const std::vector<int32_t>& ids) {
  std::vector<uint64_t> mask(MaskWords(grammar.trie().vocabulary_size()));
  const auto constraint = grammar.NewConstraint();
  std::vector<double> masks, accepts;
  for (const int32_t id : ids) {
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status masked = constraint->Mask(absl::MakeSpan(mask));
    const auto middle = std::chrono::steady_clock::now();
    const absl::Status accepted = constraint->Accept(id);
    const auto end = std::chrono::steady_clock::now();
    if (!masked.ok() || !accepted.ok()) {
      std::printf("%s: refused\n", what);
      return;
    }
    masks.push_back(Microseconds(middle - begin));
    accepts.push_back(Microseconds(end - middle));
  }
  double sum = 0, accept = 0;
  for (const double m : masks) sum += m;
  for (const double a : accepts) accept += a;
  std::sort(masks.begin(), masks.end());
  std::printf(
      "%-24s %4zu masks: mean %8.1f  median %8.1f  max %8.1f  accept "
      "%.2f\n",
      what, masks.size(), sum / masks.size(), masks[masks.size() / 2],
      masks.back(), accept / masks.size());
}

int Run(const std::string& argument) {
  absl::StatusOr<Vocabulary> vocabulary = VocabularyOf(argument);
  if (!vocabulary.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(vocabulary.status().message()).c_str());
    return 1;
  }
  const auto tokenizer = Tokenizer::Create(*std::move(vocabulary));
  if (!tokenizer.ok()) return 1;
  const auto begin = std::chrono::steady_clock::now();
  const auto trie = std::make_shared<const grammar::TokenTrie>(**tokenizer);
  std::printf("%d tokens, trie of %zu nodes in %.1f ms\n",
              trie->vocabulary_size(), trie->nodes().size(),
              Microseconds(std::chrono::steady_clock::now() - begin) / 1000);
  EncodeOptions options;
  options.add_special = false;
  const auto ids = (*tokenizer)->Encode(kText, options);
  if (!ids.ok()) return 1;
  // A space prefix would be the first token's.
  std::vector<int32_t> text(ids->begin(), ids->end());
  while (!text.empty() && trie->Bytes(text[0]) == " ") text.erase(text.begin());
  const auto schema = grammar::FromJsonSchema(Json::parse(kSchema));
  if (!schema.ok()) return 1;
  const std::pair<const char*, grammar::Syntax> cases[] = {
      {"JSON mode", grammar::AnyJsonObject()}, {"schema", *schema}};
  for (const auto& [name, syntax] : cases) {
    const auto made = grammar::Grammar::Create(syntax, trie);
    if (!made.ok()) return 1;
    Walk((std::string(name) + ", first").c_str(), **made, text);
    Walk((std::string(name) + ", again").c_str(), **made, text);
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SIZE|FILE.gguf\n", argv[0]);
    return 2;
  }
  return weft::Run(argv[1]);
}
