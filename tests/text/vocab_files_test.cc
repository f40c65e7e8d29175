// Tokenisers on vocabularies read from GGUF files: the project's own with their
// manifest, and published ones, if they are at hand, with the ids that their
// models' tokenisers give.
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/vocabulary.h"
#include "tests/shared_data.h"
#include "tests/text/test_vocabulary.h"

namespace weft {
namespace {

constexpr char kFolder[] = "tests/data/tok/";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<const Tokenizer> OpenTokenizer(const std::string& path) {
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  const auto vocabulary = ReadVocabulary(*file);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return vocabulary.ok() ? MakeTokenizer(*vocabulary) : nullptr;
}

TEST(VocabFiles, EveryCaseOfTheManifest) {
  const auto manifest = nlohmann::json::parse(
      ReadFile(absl::StrCat(kFolder, "tok-manifest.json")));
  std::map<std::string, std::unique_ptr<const Tokenizer>> tokenizers;
  int cases = 0;
  for (const auto& c : manifest) {
    const std::string file = c["file"];
    auto& tokenizer = tokenizers[file];
    if (tokenizer == nullptr) {
      tokenizer = OpenTokenizer(absl::StrCat(kFolder, file));
    }
    ASSERT_NE(tokenizer, nullptr) << file;
    const EncodeOptions options = {c["add_bos"], c["parse_special"]};
    if (c.contains("text")) {
      const std::string text = c["text"];
      EXPECT_EQ(Encode(*tokenizer, text, options),
                c["ids"].get<std::vector<int32_t>>())
          << file << ": " << text;
    } else {
      const std::string text =
          Repeat(c["repeat"][0].get<std::string>(), c["repeat"][1]);
      EXPECT_EQ(Encode(*tokenizer, text, options).size(), c["count"])
          << file << ": " << c["repeat"];
    }
    ++cases;
  }
  EXPECT_GT(cases, 60);
}

std::string PublishedFolder() {
  return SharedFolder("WEFT_VOCAB_DIR", "vocab",
                      absl::StrCat(kFolder, "tok-manifest.json"));
}

class PublishedVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(PublishedVocabulary, GivesTheModelsIdsAndTheTextBack) {
  const std::string path =
      absl::StrCat(PublishedFolder(), "/ggml-vocab-", GetParam(), ".gguf");
  if (!std::ifstream(path).good()) {
    GTEST_SKIP() << path << " is not there: set WEFT_VOCAB_DIR";
  }
  const auto tokenizer = OpenTokenizer(path);
  ASSERT_NE(tokenizer, nullptr);
  std::vector<std::string> texts = absl::StrSplit(
      ReadFile(absl::StrCat(path, ".inp")), "\n__ggml_vocab_test__\n");
  if (texts.back().empty()) texts.pop_back();
  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(absl::StrCat(path, ".out")), '\n');
  ASSERT_GE(lines.size(), texts.size());
  ASSERT_GT(texts.size(), 40u);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids =
        Encode(*tokenizer, texts[i], {false, false, /*normalize=*/false});
    EXPECT_EQ(absl::StrJoin(ids, " "), absl::StripAsciiWhitespace(lines[i]))
        << texts[i];
    const auto text = tokenizer->Decode(ids, {});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(VocabFiles, PublishedVocabulary,
                         ::testing::Values("llama-spm", "gpt-2",
                                           "deepseek-coder", "falcon", "mpt",
                                           "refact"));

}  // namespace
}  // namespace weft
