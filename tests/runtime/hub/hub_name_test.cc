#include "runtime/hub/hub_name.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

std::vector<HubFile> Files(const std::vector<std::string>& paths) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) {
    HubFile file;
    file.path = path;
    file.bytes = 1000;
    files.push_back(std::move(file));
  }
  return files;
}

// Types of all choices.
std::string Types(const std::vector<std::string>& paths) {
  return absl::StrJoin(ChoicesOf(Files(paths)), " ",
                       [](std::string* out, const ModelChoice& choice) {
                         absl::StrAppend(out, choice.type);
                       });
}

std::string Chosen(const std::vector<std::string>& paths,
                   const std::string& type) {
  const absl::StatusOr<ModelChoice> choice =
      Choose(ChoicesOf(Files(paths)), {"o/n", type});
  return choice.ok() ? choice->files[0].path
                     : std::string(choice.status().message());
}

TEST(HubName, IsARepositoryAndATypeOrFile) {
  const auto name = ParseHubName("unsloth/Qwen3-0.6B-GGUF:Q4_K_M");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repository, "unsloth/Qwen3-0.6B-GGUF");
  EXPECT_EQ(name->type, "Q4_K_M");
  EXPECT_EQ(name->ToString(), "unsloth/Qwen3-0.6B-GGUF:Q4_K_M");
  EXPECT_EQ(ParseHubName("a/b")->type, "");
  EXPECT_EQ(ParseHubName("a/b:x/y.gguf")->type, "x/y.gguf");
  for (const char* other :
       {"",         "a",      "a/",       "/a",     "a/b/c",   "../b",
        "a/..",     "a/b..c", "./b",      "a/.b",   "-a/b",    "a/b.gguf",
        "a/b.weft", "a/b:",   "a/b:../c", "a/b:/c", "a/b:c\n", "a b/c",
        "a/b?c",    "a\\b/c", "C:/model"}) {
    EXPECT_FALSE(ParseHubName(other)) << other;
  }
}

TEST(HubName, IsInAddressesOfTheHub) {
  const auto of = [](absl::string_view url) {
    const auto name = ParseHubUrl(url, "https://hub.example/x/");
    return name ? name->ToString() : "";
  };
  EXPECT_EQ(of("https://hub.example/x/a/b"), "a/b");
  EXPECT_EQ(of("https://hub.example/x/a/b/"), "a/b");
  EXPECT_EQ(of("https://hub.example/x/a/b:Q8_0"), "a/b:Q8_0");
  EXPECT_EQ(of("https://hub.example/x/a/b/tree/main?not=1#this"), "a/b");
  EXPECT_EQ(of("https://hub.example/x/a/b/resolve/main/c/d.gguf?download=true"),
            "a/b:c/d.gguf");
  EXPECT_EQ(of("https://hub.example/x/a/b/blob/main/d.gguf"), "a/b:d.gguf");
  for (const char* other :
       {"https://hub.example/x/a", "https://hub.example/a/b",
        "https://hub.example.org/x/a/b", "http://hub.example/x/a/b",
        "https://hub.example/x/a/b/resolve/main",
        "https://hub.example/x/a/b/resolve/main/../d.gguf",
        "https://hub.example/x/a/b/resolve/1234/d.gguf",
        "https://hub.example/x/a/b/discussions/1", "a/b", ""}) {
    EXPECT_EQ(of(other), "") << other;
  }
}

TEST(HubName, PlainPaths) {
  for (const char* path : {"a", "a.gguf", "a/b c.gguf", "Q8_0/x-1.gguf"}) {
    EXPECT_TRUE(IsPlainPath(path)) << path;
  }
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"),
        std::string("a//b"), std::string(".."), std::string("a/../b"),
        std::string("."), std::string("./a"), std::string(".hidden"),
        std::string("a\\b"), std::string("a\nb"), std::string("a\x1b[31m"),
        std::string("a\0b", 3), std::string("a\x7f"), std::string("\xc3\xa4"),
        std::string(181, 'a'), std::string("c:x")}) {
    EXPECT_FALSE(IsPlainPath(path)) << path;
  }
}

TEST(HubName, NamesOfFilesSayTheirTypes) {
  const struct {
    const char *path, *type;
  } cases[] = {
      {"SmolLM2-135M-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"model.Q8_0.gguf", "Q8_0"},
      {"ggml-model-q4_0.gguf", "Q4_0"},
      {"gemma-3-1b-it-qat-q4_0.gguf", "Q4_0"},
      {"ggml_model_f16.gguf", "F16"},
      {"Qwen3-8B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"x-IQ2_XXS.gguf", "IQ2_XXS"},
      {"x-TQ1_0.gguf", "TQ1_0"},
      {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
      {"Qwen-BF16-v2.gguf", "BF16"},
      {"Q6_K/model.gguf", "Q6_K"},
      {"Qwen3-0.6B.gguf", ""},
      {"F32.gguf", "F32"},
  };
  for (const auto& c : cases) EXPECT_EQ(Types({c.path}), c.type) << c.path;
}

TEST(HubName, WhatIsNoLanguageModelIsLeftOut) {
  EXPECT_EQ(Types({"mmproj-F16.gguf", "x.imatrix.gguf", "README.md", ".gguf",
                   "../x-Q4_0.gguf", "x-Q4_0.gguf.bak"}),
            "");
}

TEST(HubName, PartsAreOneModelWhenAllAreThere) {
  const std::vector<std::string> paths = {
      "x-Q8_0-00002-of-00003.gguf", "x-Q8_0-00001-of-00003.gguf",
      "x-Q8_0-00003-of-00003.gguf", "x-F16-00001-of-00002.gguf",
      "BF16/x-00001-of-00001.gguf"};
  const std::vector<ModelChoice> choices = ChoicesOf(Files(paths));
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0].type, "BF16");
  EXPECT_EQ(choices[1].type, "Q8_0");
  ASSERT_EQ(choices[1].files.size(), 3u);
  EXPECT_EQ(choices[1].files[0].path, paths[1]);
  EXPECT_EQ(choices[1].bytes(), 3000);
}

TEST(HubName, ATypeIsChosen) {
  const std::vector<std::string> paths = {"x-F16.gguf", "x-Q8_0.gguf",
                                          "x-Q4_0.gguf", "x-Q4_K_M.gguf"};
  EXPECT_EQ(Chosen(paths, ""), "x-Q4_K_M.gguf");
  EXPECT_EQ(Chosen({paths[0], paths[1], paths[2]}, ""), "x-Q4_0.gguf");
  EXPECT_EQ(Chosen({paths[0], paths[1]}, ""), "x-Q8_0.gguf");
  EXPECT_EQ(Chosen({"x-UD-Q4_K_M.gguf", "x-Q8_0.gguf"}, ""),
            "x-UD-Q4_K_M.gguf");
  EXPECT_EQ(Chosen({"x.gguf"}, ""), "x.gguf");
  EXPECT_EQ(Chosen(paths, "q8_0"), "x-Q8_0.gguf");
  EXPECT_EQ(Chosen(paths, "x-F16.gguf"), "x-F16.gguf");
  EXPECT_EQ(Chosen({"x-UD-Q4_K_XL.gguf"}, "Q4_K_XL"), "x-UD-Q4_K_XL.gguf");
  EXPECT_EQ(Chosen({"a/x-Q4_0.gguf", "x-Q4_0.gguf"}, "x-Q4_0.gguf"),
            "x-Q4_0.gguf");
  EXPECT_EQ(Chosen(paths, "Q2_K"),
            "no Q2_K there: o/n: it has F16 1.0 kB, Q4_0 1.0 kB, Q4_K_M 1.0 "
            "kB, Q8_0 1.0 kB");
  EXPECT_EQ(Chosen({}, ""), "no GGUF file there: o/n: it has none");
  EXPECT_EQ(Chosen({"a-Q4_0.gguf", "b-Q4_0.gguf"}, "Q4_0"),
            "more than one file is meant: o/n:Q4_0: choose one: "
            "o/n:a-Q4_0.gguf, o/n:b-Q4_0.gguf");
}

TEST(HubName, SizesAreReadable) {
  EXPECT_EQ(DescribeBytes(0), "0 B");
  EXPECT_EQ(DescribeBytes(999), "999 B");
  EXPECT_EQ(DescribeBytes(1000), "1.0 kB");
  EXPECT_EQ(DescribeBytes(2140000000), "2.1 GB");
  EXPECT_EQ(DescribeBytes(999999999), "1.0 GB");
  EXPECT_EQ(DescribeBytes(42000000), "42 MB");
}

}  // namespace
}  // namespace weft
