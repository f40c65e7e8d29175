// llama.cpp's names of flags, and words spelt almost right.
#include "cli/aliases.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

CommandLine Translated(const Words& words) {
  const std::set<std::string, std::less<>> known = {"-p",
                                                    "-f",
                                                    "-n",
                                                    "--context",
                                                    "--threads",
                                                    "--seed",
                                                    "--slots",
                                                    "--system",
                                                    "--temperature",
                                                    "--repeat-window",
                                                    "--model-name",
                                                    "--copy-model",
                                                    "--chat-template",
                                                    "--kv-type",
                                                    "--top-k"};
  auto line = TranslateFlags(words, [&](absl::string_view name) {
    return known.find(name) != known.end();
  });
  if (line.ok()) return *std::move(line);
  return {{}, {std::string(line.status().message())}};
}

TEST(Aliases, NamesOfLlamaCppAreOurs) {
  const struct {
    Words theirs, ours;
  } cases[] = {
      {{"run", "-m", "x.gguf", "-p", "a"}, {"run", "x.gguf", "-p", "a"}},
      {{"run", "--model=x.gguf"}, {"run", "x.gguf"}},
      {{"run", "-hf", "owner/name"}, {"run", "owner/name"}},
      {{"chat", "-hfr", "owner/name:Q8_0"}, {"chat", "owner/name:Q8_0"}},
      {{"serve", "--hf-repo=owner/name"}, {"serve", "owner/name"}},
      {{"run", "-mu", "http://x/y"}, {"run", "http://x/y"}},
      {{"run", "-ctk", "q8_0", "x", "-ctv", "q8_0"},
       {"run", "--kv-type=q8_0", "x"}},
      {{"run", "--cache-type-k=q8_0", "--cache-type-v=q8_0"},
       {"run", "--kv-type=q8_0"}},
      {{"run", "-ctk", "f16", "x"}, {"run", "--kv-type=f16", "x"}},
      {{"run", "-c", "512"}, {"run", "--context", "512"}},
      {{"run", "--ctx-size=512"}, {"run", "--context=512"}},
      {{"run", "-t", "2"}, {"run", "--threads", "2"}},
      {{"run", "-s", "7"}, {"run", "--seed", "7"}},
      {{"run", "--temp", "0"}, {"run", "--temperature", "0"}},
      {{"run", "--temp=0"}, {"run", "--temperature=0"}},
      {{"run", "--n-predict", "9"}, {"run", "-n", "9"}},
      {{"run", "--n-predict=9"}, {"run", "-n", "9"}},
      {{"run", "--predict", "9"}, {"run", "-n", "9"}},
      {{"chat", "-sys", "be"}, {"chat", "--system", "be"}},
      {{"chat", "--system-prompt", "be"}, {"chat", "--system", "be"}},
      {{"run", "--repeat-last-n", "9"}, {"run", "--repeat-window", "9"}},
      {{"serve", "-np", "9"}, {"serve", "--slots", "9"}},
      {{"serve", "--parallel", "9"}, {"serve", "--slots", "9"}},
      {{"serve", "-a", "x"}, {"serve", "--model-name", "x"}},
      {{"serve", "--alias", "x"}, {"serve", "--model-name", "x"}},
      {{"run", "--no-mmap"}, {"run", "--copy-model"}},
      {{"chat", "--chat-template-file", "x"}, {"chat", "--chat-template", "x"}},
      // Ours, others', values, and what comes after "--".
      {{"run", "-p", "a", "--top-k", "9"}, {"run", "-p", "a", "--top-k", "9"}},
      {{"run", "--no-such-flag"}, {"run", "--no-such-flag"}},
      {{"tokenize", "x", "--", "-c"}, {"tokenize", "x", "--", "-c"}},
      {{"run", "-", "-c=1"}, {"run", "-", "-c=1"}},
  };
  for (const auto& c : cases) {
    const CommandLine line = Translated(c.theirs);
    EXPECT_EQ(line.words, c.ours) << c.theirs[1];
    EXPECT_THAT(line.notices, ElementsAre());
  }
}

TEST(Aliases, WhatIsAboutGpusIsLeftOutAndSaid) {
  for (const Words& words : {Words{"run", "-ngl", "99", "-n", "1"},
                             Words{"run", "--n-gpu-layers=99", "-n", "1"},
                             Words{"run", "--gpu-layers", "99", "-n", "1"}}) {
    const CommandLine line = Translated(words);
    EXPECT_THAT(line.words, ElementsAre("run", "-n", "1"));
    EXPECT_EQ(line.notices.size(), 1u);
  }
  EXPECT_THAT(Translated({"run", "-ngl"}).words, ElementsAre("run"));
}

TEST(Aliases, WhatIsAlwaysOrNeverDoneIsLeftOutAndSaid) {
  const struct {
    Words flag;
    const char* why;
  } cases[] = {
      {{"-b", "512"}, "--buckets"},
      {{"--batch-size=512"}, "--buckets"},
      {{"-ub", "64"}, "--buckets"},
      {{"--ubatch-size", "64"}, "--buckets"},
      {{"-cnv"}, "weft chat"},
      {{"-no-cnv"}, "weft run"},
      {{"--conversation"}, "weft chat"},
      {{"-i"}, "weft chat"},
      {{"-fa"}, "attention"},
      {{"-fa", "on"}, "attention"},
      {{"--flash-attn", "auto"}, "attention"},
      {{"--flash-attn=off"}, "attention"},
      {{"--mlock"}, "memory"},
      {{"--jinja"}, "Jinja"},
      {{"--no-warmup"}, "beforehand"},
      {{"-cb"}, "requests"},
  };
  for (const auto& c : cases) {
    Words words = {"chat"};
    words.insert(words.end(), c.flag.begin(), c.flag.end());
    words.push_back("model.gguf");
    const CommandLine line = Translated(words);
    EXPECT_THAT(line.words, ElementsAre("chat", "model.gguf")) << c.flag[0];
    EXPECT_THAT(line.notices, ElementsAre(::testing::HasSubstr(c.why)));
  }
}

TEST(Aliases, WhatIsWrittenAnotherWayIsRefusedWithTheWay) {
  const struct {
    Words flag;
    const char* way;
  } cases[] = {
      {{"-hff", "x.gguf"}, "owner/name:FILE"},
      {{"--hf-file=x.gguf"}, "owner/name:FILE"},
      {{"--hf-token", "x"}, "HF_TOKEN"},
      {{"--mmproj", "x.gguf"}, "no images"},
      {{"--rope-scaling", "yarn"}, "model's file"},
      {{"--rope-freq-base", "10000"}, "model's file"},
      {{"--lora-scaled", "x.gguf", "0.5"}, "--lora FILE=SCALE"},
      {{"-md", "x.gguf"}, "--speculate draft:MODEL"},
      {{"-ctk", "q8_0"}, "--kv-type"},
      {{"-ctk", "q8_0", "-ctv", "f32"}, "--kv-type"},
  };
  for (const auto& c : cases) {
    Words words = {"run"};
    words.insert(words.end(), c.flag.begin(), c.flag.end());
    const CommandLine line = Translated(words);
    EXPECT_THAT(line.words, ElementsAre()) << c.flag[0];
    EXPECT_THAT(line.notices, ElementsAre(::testing::HasSubstr(c.way)));
  }
}

TEST(Aliases, AFlagThatACommandHasNotIsNotMade) {
  for (const Words& words :
       {Words{"inspect", "--temp", "0"}, Words{"list", "-ctk", "q8_0"}}) {
    const auto line =
        TranslateFlags(words, [](absl::string_view) { return false; });
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->words, words);
  }
}

TEST(DidYouMean, NearWordsOnly) {
  const Words commands = {"run", "compile", "dump", "inspect", "serve", "chat"};
  const struct {
    const char *word, *want;
  } cases[] = {
      {"rnu", ""},
      {"ru", "run"},
      {"runn", "run"},
      {"compil", "compile"},
      {"complie", "compile"},
      {"sevre", "serve"},
      {"chta", "chat"},
      {"inspekt", "inspect"},
      {"model.gguf", ""},
      {"", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(DidYouMean(c.word, commands), c.want) << c.word;
  }
}

}  // namespace
}  // namespace weft
