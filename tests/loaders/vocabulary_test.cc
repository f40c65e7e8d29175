#include "loaders/vocabulary.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loaders/gguf.h"
#include "loaders/gguf_writer.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Change = std::function<void(GgufWriter*)>;

absl::StatusOr<Vocabulary> Read(
    const std::string& model, const Change& change = [](GgufWriter*) {},
    const VocabularyOptions& options = {}) {
  GgufWriter writer;
  writer.SetString("tokenizer.ggml.model", model);
  writer.SetStrings("tokenizer.ggml.tokens",
                    std::vector<std::string>{"<unk>", "<s>", "</s>", "\xf0"});
  writer.SetFloat32s("tokenizer.ggml.scores", {0, 0, 0, -1.5f});
  writer.SetInt32s("tokenizer.ggml.token_type", {2, 3, 3, 1});
  change(&writer);
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-vocabulary.gguf");
  const absl::Status status = writer.WriteTo(path);
  if (!status.ok()) return status;
  auto file = GgufFile::Open(path);
  unlink(path.c_str());
  if (!file.ok()) return file.status();
  return ReadVocabulary(*file, options);
}

std::string ErrorOf(const Change& change) {
  return std::string(Read("llama", change).status().message());
}

TEST(Vocabulary, SentencePieceDefaults) {
  auto vocabulary = Read("llama");
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->model(), "llama");
  EXPECT_EQ(vocabulary->pre(), "default");
  // A token may be half a character.
  EXPECT_THAT(vocabulary->tokens(),
              ElementsAre("<unk>", "<s>", "</s>", "\xf0"));
  EXPECT_THAT(vocabulary->scores(), ElementsAre(0, 0, 0, -1.5f));
  EXPECT_THAT(vocabulary->types(),
              ElementsAre(Vocabulary::UNKNOWN, Vocabulary::CONTROL,
                          Vocabulary::CONTROL, Vocabulary::NORMAL));
  EXPECT_EQ(vocabulary->merges_size(), 0);
  EXPECT_EQ(vocabulary->bos(), 1);
  EXPECT_EQ(vocabulary->eos(), 2);
  EXPECT_EQ(vocabulary->unknown(), 0);
  EXPECT_EQ(vocabulary->separator(), -1);
  EXPECT_EQ(vocabulary->padding(), -1);
  EXPECT_EQ(vocabulary->end_of_turn(), -1);
  EXPECT_TRUE(vocabulary->add_bos());
  EXPECT_FALSE(vocabulary->add_eos());
  EXPECT_TRUE(vocabulary->add_space_prefix());
  EXPECT_EQ(vocabulary->chat_template(), "");
}

TEST(Vocabulary, ByteLevelDefaults) {
  auto vocabulary = Read("gpt2", [](GgufWriter* writer) {
    writer->Remove("tokenizer.ggml.scores");
    writer->Remove("tokenizer.ggml.token_type");
    writer->SetStrings("tokenizer.ggml.merges",
                       std::vector<std::string>{"a b", "ab c"});
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->scores_size(), 0);
  EXPECT_EQ(vocabulary->types_size(), 0);
  EXPECT_THAT(vocabulary->merges(), ElementsAre("a b", "ab c"));
  EXPECT_EQ(vocabulary->bos(), -1);
  EXPECT_EQ(vocabulary->eos(), -1);
  EXPECT_FALSE(vocabulary->add_bos());
  EXPECT_FALSE(vocabulary->add_space_prefix());
}

// What files of byte-level vocabularies leave out the pre-tokeniser's row says.
TEST(Vocabulary, ByteLevelFlagsAreLeftOpen) {
  const auto silent = Read("gpt2", [](GgufWriter* writer) {
    writer->SetString("tokenizer.ggml.pre", "llama-bpe");
  });
  EXPECT_FALSE(silent->has_add_bos());
  EXPECT_FALSE(silent->has_add_eos());
  const auto said = Read("gpt2", [](GgufWriter* writer) {
    writer->SetString("tokenizer.ggml.pre", "llama-bpe");
    writer->SetBool("tokenizer.ggml.add_bos_token", false);
  });
  EXPECT_TRUE(said->has_add_bos());
  EXPECT_FALSE(said->add_bos());
}

// Published files of Gemma 4 name any pre-tokeniser and say that there is no
// BOS.
TEST(Vocabulary, Gemma4IsItsOwn) {
  const auto vocabulary = Read("gemma4", [](GgufWriter* writer) {
    writer->SetString("tokenizer.ggml.pre", "default");
    writer->SetBool("tokenizer.ggml.add_bos_token", false);
    writer->SetUint32("tokenizer.ggml.bos_token_id", 2);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->pre(), "gemma4");
  EXPECT_EQ(vocabulary->bos(), 2);
  EXPECT_EQ(vocabulary->eos(), -1);
  EXPECT_TRUE(vocabulary->add_bos());
  EXPECT_FALSE(vocabulary->add_space_prefix());
}

std::vector<std::string> WarningsOf(const std::string& model,
                                    const Change& change,
                                    const std::string& pre = "") {
  std::vector<std::string> warnings;
  VocabularyOptions options;
  options.pre = pre;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  EXPECT_TRUE(Read(model, change, options).ok());
  return warnings;
}

TEST(Vocabulary, AMissingPretokenizerIsOneWarning) {
  const Change none = [](GgufWriter*) {};
  const Change empty = [](GgufWriter* writer) {
    writer->SetString("tokenizer.ggml.pre", "");
  };
  for (const Change& change : {none, empty}) {
    EXPECT_THAT(WarningsOf("gpt2", change),
                ElementsAre(AllOf(HasSubstr("tokenizer.ggml.pre is missing"),
                                  HasSubstr("--pre NAME"))));
    EXPECT_EQ(Read("gpt2", change)->pre(), "default");
    // Others have none, or just the one.
    EXPECT_THAT(WarningsOf("llama", change), ElementsAre());
    EXPECT_THAT(WarningsOf("gemma4", change), ElementsAre());
    EXPECT_THAT(WarningsOf("gpt2", change, "qwen2"), ElementsAre());
  }
}

TEST(Vocabulary, ThePretokenizerCanBeChosen) {
  const Change named = [](GgufWriter* writer) {
    writer->SetString("tokenizer.ggml.pre", "default");
  };
  VocabularyOptions options;
  options.pre = "qwen2";
  EXPECT_EQ(Read("gpt2", named, options)->pre(), "qwen2");
  EXPECT_THAT(
      std::string(Read("llama", named, options).status().message()),
      AllOf(HasSubstr("'llama' has none"), HasSubstr("leave out --pre")));
}

TEST(Vocabulary, EqualTextsAreOneWarning) {
  const Change change = [](GgufWriter* writer) {
    writer->SetStrings("tokenizer.ggml.tokens",
                       std::vector<std::string>{"a", "b\n", "b\n", "a"});
  };
  EXPECT_THAT(
      WarningsOf("llama", change),
      ElementsAre(AllOf(HasSubstr("2 tokens have"), HasSubstr("is 1 and 2"))));
  EXPECT_THAT(WarningsOf("llama", [](GgufWriter*) {}), ElementsAre());
}

TEST(Vocabulary, FileSettingsWin) {
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetUint32("tokenizer.ggml.bos_token_id", 3);
    writer->SetInt32("tokenizer.ggml.eos_token_id", -1);
    writer->SetUint32("tokenizer.ggml.unknown_token_id", 0xffffffff);
    writer->SetUint8("tokenizer.ggml.seperator_token_id", 2);
    writer->SetUint64("tokenizer.ggml.eot_token_id", 0);
    writer->SetUint32("tokenizer.ggml.padding_token_id", 1);
    writer->SetBool("tokenizer.ggml.add_bos_token", false);
    writer->SetBool("tokenizer.ggml.add_eos_token", true);
    writer->SetBool("tokenizer.ggml.add_space_prefix", false);
    writer->SetString("tokenizer.chat_template", "{{ x }}");
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->bos(), 3);
  EXPECT_EQ(vocabulary->eos(), -1);
  EXPECT_EQ(vocabulary->unknown(), -1);
  EXPECT_EQ(vocabulary->separator(), 2);
  EXPECT_EQ(vocabulary->end_of_turn(), 0);
  EXPECT_EQ(vocabulary->padding(), 1);
  EXPECT_FALSE(vocabulary->add_bos());
  EXPECT_TRUE(vocabulary->add_eos());
  EXPECT_FALSE(vocabulary->add_space_prefix());
  EXPECT_EQ(vocabulary->chat_template(), "{{ x }}");
}

TEST(Vocabulary, TemplatesForToolsAndDocumentsBecomeOne) {
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetString("tokenizer.chat_template", "plain\n");
    writer->SetString("tokenizer.chat_template.tool_use", "with tools\n");
    writer->SetString("tokenizer.chat_template.rag", "with documents");
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->chat_template(),
            "{%+ if tools +%}with tools{%+ else +%}{%+ if documents +%}with "
            "documents{%+ else +%}plain{%+ endif +%}{%+ endif +%}");
  auto alone = Read("llama", [](GgufWriter* writer) {
    writer->SetString("tokenizer.chat_template.tool_use", "with tools");
  });
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->chat_template(), "with tools");
}

TEST(Vocabulary, FillTokensHaveTwoNames) {
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetUint32("tokenizer.ggml.prefix_token_id", 0);
    writer->SetUint32("tokenizer.ggml.fim_pre_token_id", 1);
    writer->SetUint32("tokenizer.ggml.suffix_token_id", 2);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->fill_prefix(), 1);
  EXPECT_EQ(vocabulary->fill_suffix(), 2);
  EXPECT_FALSE(vocabulary->has_fill_middle());
  EXPECT_FALSE(Read("llama", [](GgufWriter* writer) {
                 writer->SetUint32("tokenizer.ggml.fim_mid_token_id", 9999);
               }).ok());
}

std::vector<std::string> Words(int count) {
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) words.push_back(absl::StrCat("w", i));
  return words;
}

TEST(Vocabulary, WordPieceDefaultsAreBerts) {
  const auto published = [](GgufWriter* writer) {
    writer->SetStrings("tokenizer.ggml.tokens", Words(200));
    writer->Remove("tokenizer.ggml.scores");
    writer->Remove("tokenizer.ggml.token_type");
  };
  auto vocabulary = Read("bert", published);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->bos(), 101);
  EXPECT_EQ(vocabulary->eos(), 102);
  EXPECT_EQ(vocabulary->unknown(), 100);
  EXPECT_EQ(vocabulary->separator(), 102);
  EXPECT_EQ(vocabulary->padding(), 0);
  EXPECT_EQ(vocabulary->mask(), 103);
  EXPECT_TRUE(vocabulary->add_bos());
  EXPECT_TRUE(vocabulary->add_eos());
  EXPECT_FALSE(vocabulary->has_lowercase());
  vocabulary = Read("bert", [&](GgufWriter* writer) {
    published(writer);
    writer->SetUint32("tokenizer.ggml.cls_token_id", 5);
    writer->SetUint32("tokenizer.ggml.seperator_token_id", 6);
    writer->SetBool("tokenizer.ggml.add_sep_token", false);
    writer->SetBool("tokenizer.ggml.normalizer.lowercase", false);
    writer->SetBool("tokenizer.ggml.normalizer.strip_accents", true);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->bos(), 5);
  EXPECT_EQ(vocabulary->eos(), 6);
  EXPECT_FALSE(vocabulary->add_eos());
  EXPECT_FALSE(vocabulary->lowercase());
  EXPECT_TRUE(vocabulary->strip_accents());
}

// Of Falcon, whose files name none: control tokens alone, since to any other
// vocabulary the id is a comma.
TEST(Vocabulary, ByteLevelDefaultsAreControlTokens) {
  for (const bool control : {true, false}) {
    auto vocabulary = Read("gpt2", [&](GgufWriter* writer) {
      std::vector<int32_t> types(20, 1);
      if (control) types[11] = 3;
      writer->SetStrings("tokenizer.ggml.tokens", Words(20));
      writer->SetInt32s("tokenizer.ggml.token_type", types);
      writer->Remove("tokenizer.ggml.scores");
    });
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(vocabulary->bos(), control ? 11 : -1);
    EXPECT_EQ(vocabulary->eos(), control ? 11 : -1);
  }
}

TEST(Vocabulary, AllEndsAreRead) {
  const auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetUint32("tokenizer.ggml.eom_token_id", 3);
    writer->SetUint32("tokenizer.ggml.fim_pad_token_id", 0);
    writer->SetInt32s("tokenizer.ggml.eos_token_ids", {2, 1});
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(vocabulary->ends(), ElementsAre(3, 0, 2, 1));
  EXPECT_THAT(ErrorOf([](GgufWriter* writer) {
                writer->SetInt32s("tokenizer.ggml.eos_token_ids", {2, 4});
              }),
              AllOf(HasSubstr("eos_token_ids is 4"), HasSubstr("below the 4")));
}

TEST(Vocabulary, ScoresMayBeWhole) {
  const auto vocabulary = Read("gpt2", [](GgufWriter* writer) {
    writer->SetInt32s("tokenizer.ggml.scores", {0, 0, -2, 0});
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(vocabulary->scores(), ElementsAre(0, 0, -2, 0));
  EXPECT_THAT(ErrorOf([](GgufWriter* writer) {
                writer->SetInt32s("tokenizer.ggml.scores", {0});
              }),
              HasSubstr("an array of 1"));
}

TEST(Vocabulary, OtherFamiliesKeepTheirName) {
  for (const char* model : {"bert", "t5", "rwkv"}) {
    auto vocabulary = Read(model);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(vocabulary->model(), model);
  }
}

TEST(Vocabulary, TokenTypesOfAnyIntegerTypeAreConverted) {
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetInt8s("tokenizer.ggml.token_type", {2, 3, 6, 1});
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->types(2), Vocabulary::BYTE);
}

TEST(Vocabulary, WrongTypesAndCountsAreNamed) {
  EXPECT_THAT(ErrorOf([](GgufWriter* w) { w->Remove("tokenizer.ggml.model"); }),
              HasSubstr("tokenizer.ggml.model is not there"));
  EXPECT_THAT(
      ErrorOf([](GgufWriter* w) { w->Remove("tokenizer.ggml.tokens"); }),
      HasSubstr("tokenizer.ggml.tokens is not there"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetStrings("tokenizer.ggml.tokens",
                              std::vector<std::string>{});
              }),
              HasSubstr("tokenizer.ggml.tokens is an array of 0"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetUint8s("tokenizer.ggml.scores", {1, 2, 3, 4});
              }),
              AllOf(HasSubstr("tokenizer.ggml.scores is an array of 4 u8"),
                    HasSubstr("expected an array of f32")));
  for (const std::vector<float>& scores :
       {std::vector<float>{0, 0, 0}, std::vector<float>{0, 0, 0, 0, 0},
        std::vector<float>{}}) {
    EXPECT_THAT(
        ErrorOf([&](GgufWriter* w) {
          w->SetFloat32s("tokenizer.ggml.scores", scores);
        }),
        HasSubstr(absl::StrCat("scores is an array of ", scores.size(),
                               ", expected one element per token (4)")));
  }
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetFloat32s(
                    "tokenizer.ggml.scores",
                    {0, 0, std::numeric_limits<float>::quiet_NaN(), 0});
              }),
              HasSubstr("NaN for token 2"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetInt32s("tokenizer.ggml.token_type", {1, 1, 1});
              }),
              HasSubstr("tokenizer.ggml.token_type is an array of 3"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetInt32s("tokenizer.ggml.token_type", {1, 1, 7, 1});
              }),
              HasSubstr("7 for token 2"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetInt32s("tokenizer.ggml.merges", {1});
              }),
              HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetString("tokenizer.ggml.add_bos_token", "yes");
              }),
              HasSubstr("tokenizer.ggml.add_bos_token is string 'yes'"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetString("tokenizer.ggml.pre", "\xff");
              }),
              HasSubstr("tokenizer.ggml.pre"));
  EXPECT_THAT(ErrorOf([](GgufWriter* w) {
                w->SetString("tokenizer.chat_template", "\xc3");
              }),
              HasSubstr("tokenizer.chat_template is not UTF-8"));
}

TEST(Vocabulary, SpecialIdsMustBeInsideTheVocabulary) {
  for (const char* name : {"bos", "eos", "unknown", "seperator", "eot"}) {
    const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    for (int64_t id : {int64_t{4}, int64_t{-2}, int64_t{1} << 40}) {
      EXPECT_THAT(ErrorOf([&](GgufWriter* w) { w->SetInt64(key, id); }),
                  HasSubstr(absl::StrCat(key, " is ", id, ", expected an id ",
                                         "below the 4")));
    }
  }
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetUint32("tokenizer.ggml.padding_token_id", 4);
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->padding(), -1);
}

TEST(Vocabulary, DefaultIdsStayInsideATinyVocabulary) {
  auto vocabulary = Read("llama", [](GgufWriter* writer) {
    writer->SetStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
    writer->Remove("tokenizer.ggml.scores");
    writer->Remove("tokenizer.ggml.token_type");
  });
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ(vocabulary->unknown(), 0);
  EXPECT_EQ(vocabulary->bos(), -1);
  EXPECT_EQ(vocabulary->eos(), -1);
}

// Real vocabularies, where they are at hand.
TEST(Vocabulary, ReadsPublishedVocabularies) {
  const char* folder = std::getenv("WEFT_VOCAB_DIR");
  const std::string base = folder != nullptr ? folder : "../shared/vocab";
  if (access((base + "/ggml-vocab-gpt-2.gguf").c_str(), R_OK) != 0) {
    GTEST_SKIP() << "set WEFT_VOCAB_DIR to a folder with ggml-vocab-*.gguf";
  }
  struct Case {
    const char* name;
    const char* model;
    const char* pre;
    int tokens;
    int merges;
    bool add_bos;
  };
  for (const Case& c :
       {Case{"deepseek-coder", "gpt2", "deepseek-coder", 32256, 31757, true},
        Case{"falcon", "gpt2", "falcon", 65024, 64784, false},
        Case{"gpt-2", "gpt2", "gpt-2", 50257, 50000, false},
        Case{"llama-spm", "llama", "default", 32000, 0, true},
        Case{"mpt", "gpt2", "mpt", 50432, 50009, false},
        Case{"refact", "gpt2", "refact", 49216, 48891, false}}) {
    SCOPED_TRACE(c.name);
    auto file =
        GgufFile::Open(absl::StrCat(base, "/ggml-vocab-", c.name, ".gguf"));
    ASSERT_TRUE(file.ok()) << file.status();
    auto vocabulary = ReadVocabulary(*file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    EXPECT_EQ(vocabulary->model(), c.model);
    EXPECT_EQ(vocabulary->pre(), c.pre);
    EXPECT_EQ(vocabulary->tokens_size(), c.tokens);
    EXPECT_EQ(vocabulary->merges_size(), c.merges);
    EXPECT_EQ(vocabulary->add_bos(), c.add_bos);
  }
}

}  // namespace
}  // namespace weft
